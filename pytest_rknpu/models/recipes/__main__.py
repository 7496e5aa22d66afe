"""Rebuilds the model files in place: ``python -m pytest_rknpu.models.recipes [--train]``.

Without ``--train`` the probes are made anew; with it ``digits_cnn`` is also trained anew.
"""

from __future__ import annotations

import argparse
import logging

from pytest_rknpu.models.recipes import digits
from pytest_rknpu.models.recipes.probes import RECIPES
from pytest_rknpu.models.recipes.write import build_digits, build_probe, write
from pytest_rknpu.models.store import FOLDER


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m pytest_rknpu.models.recipes", description=__doc__)
    parser.add_argument(
        "--train", action="store_true", help="train digits_cnn anew (needs the extra 'train')"
    )
    models = [build_probe(recipe) for recipe in RECIPES]
    if parser.parse_args().train:
        data = digits.split()
        models.append(build_digits(digits.train(data["training"], data["training_labels"]), data))
    write(models, FOLDER)
    logging.getLogger(__name__).info("wrote %s to %s", ", ".join(m.name for m in models), FOLDER / "files")


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    main()
