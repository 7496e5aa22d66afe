"""The errors of this package: one base, one class per party that has to act.

Every message says what was wrong, where (file, table and key; or board and call) and what to do.
"""

from __future__ import annotations


class RknpuError(Exception):
    """Base of every error that this package raises on purpose."""


class ConfigurationError(RknpuError):
    """boards.toml, an option or a marker is wrong; the user mends it. Nothing was touched yet."""


class ToolkitError(RknpuError):
    """RKNN-Toolkit2 is missing, refused a model, or died; the message carries its own words."""


class ModelError(RknpuError):
    """A model file is missing, corrupt, or not for this SoC."""


class BoardError(RknpuError):
    """Board, link or power failed (outcome ``infra``): nothing is known of the requirement."""


class BoardLost(BoardError):
    """The link to a board ended, or a command list passed its deadline."""


class LeaseLost(BoardLost):
    """The board was taken away from this run while it used it: what it saw since may be another's doing."""


class BoardUnfit(BoardError):
    """A board that came back after a loss, but not as it was; the message says in what."""


class BoardChanged(BoardUnfit):
    """A board that came back with other versions, or another board in its place."""


class BoardQuarantined(BoardError):
    """A board gets no more tests in this run. The one that raised this was not tried; the first cause is
    named.
    """


class LeaseTimeout(BoardError):
    """Somebody else held the board for longer than the limit; the message names the holder."""


class HarnessError(RknpuError):
    """This package is at fault (outcome ``harness``), for instance a malformed command list."""


class ConformanceFailure(RknpuError, AssertionError):
    """The board did not do what the requirement asks (outcome ``fail``)."""


class Waived(RknpuError):
    """The requirement is not met, in just the way that is known and recorded with its reason (outcome
    ``waived``: neither green nor red)."""


class Inconclusive(RknpuError):
    """The evidence does not suffice to say pass or fail (outcome ``inconclusive``, never green)."""


class UserModelError(Inconclusive):
    """A ``[[model]]`` of boards.toml, or a file that it names, cannot be used as it is; its owner mends it.

    Nothing is known of the requirement then, and neither board nor this package is to blame.
    """
