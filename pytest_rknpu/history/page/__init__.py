"""The page of `rknpu history --html`."""

from __future__ import annotations

from pytest_rknpu.history.page.render import page_text, write_page

__all__ = ["page_text", "write_page"]
