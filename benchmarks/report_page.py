"""How long report.html of a large farm takes to be written and to open in headless Chromium.

    python benchmarks/report_page.py --boards 100 --requirements 60

Needs the packages that tests/page needs (chromium, chromium-driver, selenium).
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from page.pages import large  # the path comes first

from pytest_rknpu.report.page import write_page


def main() -> None:
    """Write, open a few times, print."""
    from selenium import webdriver

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--boards", type=int, default=100)
    parser.add_argument("--requirements", type=int, default=60)
    parser.add_argument("--opened", type=int, default=5)
    chosen = parser.parse_args()
    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for argument in ("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"):
        options.add_argument(argument)
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        path = write_page(Path(folder), large(chosen.boards, chosen.requirements))
        written = time.perf_counter() - started
        browser = webdriver.Chrome(options, webdriver.ChromeService(shutil.which("chromedriver")))
        loads = []
        for _ in range(chosen.opened):
            browser.get(path.as_uri())
            timing = "const t = performance.timing; return t.loadEventEnd - t.navigationStart"
            loads.append(float(browser.execute_script(timing)))
        browser.quit()
        size = path.stat().st_size
    print(f"{chosen.boards} boards x {chosen.requirements} requirements: {size / 2**20:.1f} MiB")
    print(f"written in {written:.2f} s; opened in {statistics.median(loads):.0f} ms (median of {len(loads)})")


if __name__ == "__main__":
    main()
