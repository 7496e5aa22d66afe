"""Boards of the rig: folders with the scripts that run Python, or a program, on the vendor's runtime."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.vendor_rig import parts

SOCS = {"rk3588": "fdab0000.npu", "rk3566": "fde40000.npu"}
"""The SoCs whose register commands the stand-in can follow, and the names of their NPUs."""
RUNTIME = "usr/lib/librknnrt.so"
"""Where a board's programs find the runtime library; RKNN-Toolkit-Lite2 looks nowhere else."""
NODES = ("card0", "renderD129")
"""The nodes of the NPU: the library opens the one, RKNN-Toolkit-Lite2 looks for the other."""
DRIVER_VERSION = "0.9.8"
BSP = "vendor-runtime rig of pytest-rknpu"

_SCRIPT = """\
#!/bin/sh
# Written by tests/vendor_rig/rig.py. {what}
[ -r {preload} ] || {{ echo "no stand-in driver: {preload} is not there" >&2; exit 125; }}
[ -e /dev/rknpu-stand-in ] || exec {unshare} /bin/sh {enter} {folder} "$0" "$@"
ulimit -c 0 # a crash is a result here, and qemu's core is large
exec {qemu} -L {root} {environment} {program}
"""


@dataclass(frozen=True)
class RigBoard:
    """One board: ``soc`` on a stand-in driver whose ``settings`` are RKNPU_STAND_IN_* (without that prefix).

    Made by `make_board`; everything of it lies in ``folder``.
    """

    soc: str
    folder: Path
    settings: Mapping[str, str]

    @property
    def name(self) -> str:
        """What boards.toml calls it."""
        return f"vendor-{self.soc}"

    @property
    def python(self) -> Path:
        """The board's Python, an executable script."""
        return self.folder / "python3"

    @property
    def program(self) -> Path:
        """An executable script that runs an aarch64 program on the board, with its arguments."""
        return self.folder / "run"

    @cached_property
    def table(self) -> str:
        """Its ``[[board]]`` table for boards.toml."""
        keys = {
            "name": self.name,
            "soc": self.soc,
            "runtime": "librknnrt",
            "transport": "local",
            "python": str(self.python),
        }
        lines = [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
        return "\n".join(["[[board]]", *lines, "stand_in = true\n"])

    def trace(self) -> list[dict[str, Any]]:
        """The calls that the stand-in driver has answered since the board was made, or `forget_trace`."""
        file = self.folder / "trace.jsonl"
        return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []

    def forget_trace(self) -> None:
        """Begin a new trace."""
        (self.folder / "trace.jsonl").unlink(missing_ok=True)


def make_board(folder: Path, soc: str, settings: Mapping[str, str] = {}, *, python: str = "") -> RigBoard:
    """A board of ``soc`` in the new folder ``folder``. Raises parts.CannotBeHad, with what is missing.

    ``settings`` such as {"FAULTS": "submit-fails:nth=2", "DRIVER": "0.9.6"}; ``python``: folders for its
    PYTHONPATH.
    """
    arm = parts.arm64_python()
    preload = parts.compiled(parts.DRIVER, "stand-in.so", "-shared", "-fPIC")
    library = parts.runtime_library()
    unshare = parts.unshare()
    folder.mkdir(parents=True)
    _add_to_root(arm.root, folder / "arm64", RUNTIME, library)
    board = RigBoard(soc, folder, settings)
    driver = settings.get("DRIVER", DRIVER_VERSION)
    _make_surroundings(
        folder,
        soc,
        settings.get("DEBUGFS_DRIVER", driver),
        absent="driver-absent" in settings.get("FAULTS", ""),
    )
    variables = {
        "LD_PRELOAD": str(preload),
        "HOME": str(folder / "home"),
        "RKNPU_STAND_IN_SOC": soc,
        "RKNPU_STAND_IN_DRIVER": driver,
        "RKNPU_STAND_IN_TRACE": str(folder / "trace.jsonl"),
        "RKNPU_STAND_IN_KERNEL_LOG": "/dev/kmsg",
        **{f"RKNPU_STAND_IN_{name}": value for name, value in settings.items()},
    }
    interpreter = {"PYTHONHOME": str(arm.root / "usr"), **({"PYTHONPATH": python} if python else {})}
    common = {
        "preload": shlex.quote(str(preload)),
        "unshare": shlex.join(unshare),
        "enter": shlex.quote(str(parts.HERE / "enter.sh")),
        "folder": shlex.quote(str(folder)),
        "qemu": shlex.quote(arm.qemu),
        "root": shlex.quote(str(folder / "arm64")),
    }
    # Python finds itself by the name that it was called by: its children then come through this script too.
    _write_script(
        board.python,
        what="Python on that board.",
        environment=_options(variables | interpreter),
        program=f'-0 "$0" {shlex.quote(str(arm.root / "usr/bin/python3.real"))} "$@"',
        **common,
    )
    _write_script(
        board.program,
        what="Runs an aarch64 program on that board.",
        environment=_options(variables),
        program='"$@"',
        **common,
    )
    return board


def _add_to_root(root: Path, made: Path, name: str, target: Path) -> None:
    """``made`` shows what is below ``root``, and the file ``name`` besides, by symbolic links."""
    made.mkdir()
    first, _, rest = name.partition("/")
    for entry in root.iterdir():
        if entry.name != first:
            (made / entry.name).symlink_to(entry)
    if rest:
        _add_to_root(root / first, made / first, rest, target)
    else:
        (made / first).symlink_to(target)


def _options(variables: Mapping[str, str]) -> str:
    return " ".join(f"-E {shlex.quote(f'{name}={value}')}" for name, value in variables.items())


def _write_script(path: Path, **words: str) -> None:
    path.write_text(_SCRIPT.format(**words))
    path.chmod(0o755)


def _make_surroundings(folder: Path, soc: str, driver: str, *, absent: bool) -> None:
    """What the board's /sys, kernel log and os-release say, as files that are mounted over the host's."""
    for name in ("root", "home", "sys/class/drm"):
        (folder / name).mkdir(parents=True)
    tree = folder / "sys/firmware/devicetree/base"
    tree.mkdir(parents=True)
    (tree / "compatible").write_text(f"pytest-rknpu,{soc}-stand-in\0rockchip,{soc}\0")
    (tree / "model").write_text(f"Stand-in for a board with {soc.upper()}\0")
    (folder / "os-release").write_text(f'ID=stand-in\nNAME="{BSP}"\nPRETTY_NAME="{BSP}, no hardware"\n')
    (folder / "kmsg").touch()
    if absent:
        return
    for node in NODES:
        device = folder / "sys/class/drm" / node / "device"
        device.mkdir(parents=True)
        (device / "uevent").write_text(
            f"DRIVER=RKNPU\nOF_FULLNAME=/npu\nOF_COMPATIBLE_0=rockchip,{soc}-rknpu\n"
        )
    debug = folder / "sys/kernel/debug/rknpu"
    debug.mkdir(parents=True)
    (debug / "version").write_text(f"RKNPU driver: v{driver}\n")
    cores = "NPU load:  Core0:  0%, Core1:  0%, Core2:  0%,\n" if soc == "rk3588" else "NPU load:  0%\n"
    (debug / "load").write_text(cores)
    (folder / "kmsg").write_text(
        f"6,1,1,-;[drm] Initialized rknpu {driver} 20240828 for {SOCS[soc]} on minor 0\n"
    )
