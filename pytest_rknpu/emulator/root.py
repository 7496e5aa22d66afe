"""A folder that stands for ``/`` when the agent probes an emulated board: device tree, sysfs, debugfs,
release files.

Every free text says "emulated", so that no record of it can be taken for a board's. What has to be matched
(the device tree, the driver's name) has the real form.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_rknpu.emulator.faults import parse_faults
from pytest_rknpu.emulator.platform import DEFAULT_DRIVER, DEFAULT_RUNTIME
from pytest_rknpu.inventory.socs import SoC, find_soc

# Not the node that most images have: what looks for a fixed number finds nothing (istoreos#2703).
_RENDER_NODE = "renderD129"


def make_root(
    folder: str | Path,
    soc: str,
    versions: Mapping[str, str] | None = None,
    faults: Sequence[str] = (),
    governor: str = "userspace",
) -> None:
    """Write the sysroot of an emulated ``soc`` into ``folder`` (made if it is missing; files are
    overwritten).

    ``versions`` may give ``runtime`` and ``driver``; both appear as "emulated VERSION". ``faults`` as for
    `open_library`; those of layer "system" show here. Raises ConfigurationError for an unknown SoC or
    fault, OSError for an unwritable folder.
    """
    found = find_soc(soc)
    facts = parse_faults(faults).root
    given = versions or {}
    driver = _emulated(given.get("driver", DEFAULT_DRIVER))
    runtime = _emulated(given.get("runtime", DEFAULT_RUNTIME))
    files = {
        **_identity(found, facts.compatible or found.device_tree),
        **_driver(driver, found.npu_cores),
        **_clocks(found, governor),
        "etc/emulated-release": f"emulated board support package 1 with runtime {runtime}\n",
    }
    if facts.has_npu_node:
        files.update(_npu_node(found))
    for path, text in files.items():
        target = Path(folder) / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(text.encode())
    for path in [path for path in files if path.endswith(("userspace/set_freq", "scaling_setspeed"))]:
        _read_back(Path(folder) / path)


def _emulated(version: str) -> str:
    return version if version.startswith("emulated ") else f"emulated {version}"


def _identity(soc: SoC, compatible: str) -> dict[str, str]:
    return {
        "proc/device-tree/compatible": f"emulated,{soc.name}-board\0{compatible}\0",
        "proc/device-tree/model": f"Emulated {soc.name} board\0",
        "etc/os-release": 'NAME="emulated"\nID=emulated\nPRETTY_NAME="emulated board support package 1"\n'
        'VERSION_ID="1"\n',
        "proc/version": "Linux version 6.1.0-emulated (emulated)\n",
        "proc/sys/kernel/osrelease": "6.1.0-emulated\n",
        "proc/cmdline": "emulated\n",
    }


def _driver(driver: str, cores: int) -> dict[str, str]:
    per_core = " ".join(f"Core{core}:  0%," for core in range(cores)) if cores > 1 else "0%"
    return {
        "sys/module/rknpu/version": f"{driver}\n",
        "sys/kernel/debug/rknpu/version": f"RKNPU driver: v{driver}\n",
        "sys/kernel/debug/rknpu/load": f"NPU load:  {per_core}\n",
        "sys/kernel/debug/rknpu/power": "on\n",
        "dev/kmsg": "6,1,0,-;rknpu: emulated driver started\n",
    }


def _npu_node(soc: SoC) -> dict[str, str]:
    node = f"sys/class/drm/{_RENDER_NODE}"
    uevent = f"DRIVER=RKNPU\nOF_NAME=npu\nOF_COMPATIBLE_0={soc.device_tree}-rknpu\nOF_COMPATIBLE_N=1\n"
    return {
        f"{node}/device/uevent": uevent,
        f"{node}/uevent": f"MAJOR=226\nMINOR=129\nDEVNAME=dri/{_RENDER_NODE}\nDEVTYPE=drm_minor\n",
        f"{node}/dev": "226:129\n",
        # A display controller: found first by whoever takes the first node.
        "sys/class/drm/card0/device/uevent": "DRIVER=rockchip-drm\nOF_COMPATIBLE_0=rockchip,vop\n",
        f"dev/dri/{_RENDER_NODE}": "",
    }


def _clocks(soc: SoC, governor: str) -> dict[str, str]:
    """Clocks that can be pinned, as far as this SoC has them; ``governor`` is the NPU's to begin with."""
    files = {
        "sys/class/thermal/thermal_zone0/type": "npu-thermal\n",
        "sys/class/thermal/thermal_zone0/temp": "45000\n",
        "sys/class/thermal/thermal_zone0/trip_point_0_type": "passive\n",
        "sys/class/thermal/thermal_zone0/trip_point_0_temp": "85000\n",
        "sys/class/thermal/cooling_device0/type": "thermal-devfreq-0\n",
        "sys/class/thermal/cooling_device0/cur_state": "0\n",
        "sys/class/thermal/cooling_device0/max_state": "5\n",
        "proc/loadavg": "0.00 0.00 0.00 1/1 1\n",
        "run/.keep": "",
    }
    policy = "sys/devices/system/cpu/cpufreq/policy0"
    files |= {
        f"{policy}/scaling_governor": "userspace\n",
        f"{policy}/scaling_available_governors": "userspace performance schedutil\n",
        f"{policy}/scaling_available_frequencies": "408000 1608000\n",
        f"{policy}/scaling_setspeed": "1608000\n",
    }
    if soc.npu_devfreq:
        files |= _devfreq(soc.npu_devfreq, "300000000 1000000000", "1000000000", governor)
        files |= _devfreq("dmc", "528000000 1056000000", "1056000000", "userspace")
    return files


def _devfreq(node: str, available: str, current: str, governor: str) -> dict[str, str]:
    folder = f"sys/class/devfreq/{node}"
    return {
        f"{folder}/governor": f"{governor}\n",
        f"{folder}/available_governors": f"userspace performance simple_ondemand {governor}\n",
        f"{folder}/available_frequencies": f"{available}\n",
        f"{folder}/userspace/set_freq": f"{current}\n",
    }


def _read_back(setting: Path) -> None:
    """Let the file of the current frequency show what is set."""
    in_cpufreq = setting.name == "scaling_setspeed"
    link = setting.with_name("scaling_cur_freq") if in_cpufreq else setting.parent.with_name("cur_freq")
    link.unlink(missing_ok=True)
    link.symlink_to(os.path.relpath(setting, link.parent))
