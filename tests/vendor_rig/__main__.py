"""Makes a board of the rig to run the suites on by hand: ``python -m tests.vendor_rig FOLDER``."""

from __future__ import annotations

import argparse
from pathlib import Path

from tests.vendor_rig.rig import SOCS, make_board


def main() -> None:
    """Make the board in a new folder, with its boards.toml, and print that."""
    parser = argparse.ArgumentParser(prog="python -m tests.vendor_rig")
    parser.add_argument("folder", type=Path, help="new folder for the board")
    parser.add_argument("--soc", choices=sorted(SOCS), default="rk3588")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="RKNPU_STAND_IN_NAME, such as FAULTS"
    )
    arguments = parser.parse_args()
    settings = dict(entry.split("=", 1) for entry in arguments.set)
    board = make_board(arguments.folder.absolute(), arguments.soc, settings)
    file = board.folder / "boards.toml"
    file.write_text(board.table)
    print(f"# {file}\n{board.table}", end="")


if __name__ == "__main__":
    main()
