"""report.html: one self-contained page over a results.jsonl."""

from __future__ import annotations

from pytest_rknpu.report.page.render import FILE_NAME, page_text, write_page

__all__ = ["FILE_NAME", "page_text", "write_page"]
