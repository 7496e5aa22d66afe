"""Ranges of versions, such as ``>=0.9.2, <0.9.8``: what a waiver's driver, runtime or toolkit has to lie in.

Versions come as boards and tools word them (``2.3.2 (429f97ae6b@2025-04-09T09:09:27)``, ``emulated 0.9.8``);
what counts is the first run of numbers with dots in them. Ranges are those of Python packages (PEP 440).
"""

from __future__ import annotations

import re

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

_NUMBERS = re.compile(r"(?<![\w.])v?(\d{1,9}(?:\.\d{1,9}){1,4}(?:[a-z]\d{1,4})?)(?![\w.]*\.\d)")
_UNKNOWN = ("absent", "probe blocked")


def parse_range(text: str) -> SpecifierSet:
    """The range that ``text`` describes. Raises ValueError with what to write instead."""
    try:
        found = SpecifierSet(text)
    except InvalidSpecifier:
        raise ValueError(f'{text!r} is no range of versions; write one such as ">=0.9.2, <0.9.8"') from None
    if not len(found):
        raise ValueError("an empty range holds every version; leave the key out, or say which versions")
    return found


def version_in(text: str) -> Version | None:
    """The version that ``text`` names, None where it names none (absent, probe blocked, a bare word)."""
    if text.startswith(_UNKNOWN):
        return None
    found = _NUMBERS.search(text)
    if found is None:
        return None
    try:
        return Version(found[1])
    except InvalidVersion:
        return None


def holds(wanted: str, text: str) -> bool:
    """Whether the version in ``text`` lies in the range ``wanted``; an unknown version lies in none."""
    version = version_in(text)
    return version is not None and parse_range(wanted).contains(version, prereleases=True)
