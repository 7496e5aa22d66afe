"""Headless Chromium for the tests of pages: Selenium drives Debian's, without a network."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

_ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def started_browser(profile: Path) -> Iterator[Any]:
    """A browser, until the fixture that yields from this ends. Skips where none is installed."""
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("no Chromium is installed; apt-get install chromium chromium-driver")
    webdriver = pytest.importorskip("selenium.webdriver", reason="pip install selenium")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in (*_ARGUMENTS, f"--user-data-dir={profile}"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = webdriver.Chrome(options, webdriver.ChromeService(driver))
    yield started
    started.quit()


_CONTRASTS = """
const parts = (text) => text.match(/[\\d.]+/g).slice(0, 3).map(Number);
const linear = (v) => (v / 255 <= .04045 ? v / 255 / 12.92 : ((v / 255 + .055) / 1.055) ** 2.4);
const light = ([r, g, b]) => .2126 * linear(r) + .7152 * linear(g) + .0722 * linear(b);
const ground = (e) => {
  for (; e; e = e.parentElement) {
    const colour = getComputedStyle(e).backgroundColor;
    if (!/, 0\\)$/.test(colour)) return colour;
  }
};
const kinds = 'body, a, th, td, p, .tag, td[class] button, small, summary, figcaption, svg text';
const found = {};
for (const e of document.querySelectorAll(kinds)) {
  if (!e.textContent.trim()) continue;
  const drawn = e.namespaceURI.endsWith('svg');
  const [a, b] = [light(parts(getComputedStyle(e)[drawn ? 'fill' : 'color'])), light(parts(ground(e)))];
  const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
  const kind = e.tagName + '.' + (drawn ? '' : e.className || e.parentElement.className);
  found[kind] = Math.min(found[kind] ?? 99, ratio);
}
return found;
"""
"""A script that returns the contrast of each kind of text with its ground, by WCAG's formula."""


def widths(page: Any, width: int) -> tuple[int, int]:
    """(of the page's content, of the window) in a window that is ``width`` pixels wide."""
    page.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False},
    )
    content, window = page.execute_script("return [document.documentElement.scrollWidth, window.innerWidth]")
    page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    return content, window


def contrasts(page: Any, scheme: str) -> dict[str, float]:
    """The least contrast of each kind of text with its ground, by WCAG's formula."""
    page.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    )
    found: dict[str, float] = page.execute_script(_CONTRASTS)
    return found
