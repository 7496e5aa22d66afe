"""Rebuilds the shipped .rknn files in place: ``python -m pytest_rknpu.prebuilt [--force]``.

Run it once per toolkit version, each in an environment of its own.
"""

from __future__ import annotations

import argparse
import logging

from pytest_rknpu.prebuilt.rebuild import rebuild
from pytest_rknpu.prebuilt.store import FOLDER


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m pytest_rknpu.prebuilt", description=__doc__)
    parser.add_argument("--force", action="store_true", help="build anew what has not changed, too")
    written = rebuild(FOLDER, force=parser.parse_args().force)
    logging.getLogger(__name__).info("wrote %s", ", ".join(written) or "nothing: all is up to date")


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    main()
