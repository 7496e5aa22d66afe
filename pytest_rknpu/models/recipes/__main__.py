"""Rebuilds the model files in place: ``python -m pytest_rknpu.models.recipes [--train] [--train-sparse]``.

Without an option the probes are made anew; with ``--train`` ``digits_cnn`` is also trained anew, with
``--train-sparse`` the sparse classifiers are.
"""

from __future__ import annotations

import argparse
import logging

from pytest_rknpu.models.recipes import digits
from pytest_rknpu.models.recipes.probes import RECIPES
from pytest_rknpu.models.recipes.sparse_files import build_sparse_digits
from pytest_rknpu.models.recipes.write import build_digits, build_probe, write
from pytest_rknpu.models.store import FOLDER


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m pytest_rknpu.models.recipes", description=__doc__)
    parser.add_argument(
        "--train", action="store_true", help="train digits_cnn anew (needs the extra 'train')"
    )
    parser.add_argument(
        "--train-sparse", action="store_true", help="train the sparse classifiers anew (same extra)"
    )
    chosen = parser.parse_args()
    models = [build_probe(recipe) for recipe in RECIPES]
    if chosen.train_sparse:
        models += build_sparse_digits(digits.split())
    if chosen.train:
        data = digits.split()
        models.append(build_digits(digits.train(data["training"], data["training_labels"]), data))
    write(models, FOLDER)
    logging.getLogger(__name__).info("wrote %s to %s", ", ".join(m.name for m in models), FOLDER / "files")


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    main()
