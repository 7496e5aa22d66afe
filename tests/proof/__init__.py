"""The suites prove themselves: each seeded fault is caught by the requirement that is there for it.

``python -m tests.proof`` (from the repository's root) makes ``kills.json`` and ``docs/proof.md`` anew; the
tests here recompute a part of both and refuse a fault that survives or a kill that nobody expects.
"""
