"""What holds for all files of tests: pytest imports each by its base name."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_no_two_test_modules_share_a_name() -> None:
    """Not even one of tests/ and one of suites/: the tests run suites in their own process, too."""
    files = [*ROOT.glob("suites/**/test_*.py"), *ROOT.glob("tests/**/test_*.py")]
    names = Counter(file.name for file in files if not (file.parent / "__init__.py").exists())
    assert [name for name, count in names.items() if count > 1] == []
