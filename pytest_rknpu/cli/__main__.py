"""``python -m pytest_rknpu.cli`` is the ``rknpu`` command where no script was installed."""

from pytest_rknpu.cli import main

main()
