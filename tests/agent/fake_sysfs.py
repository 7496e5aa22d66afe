"""A folder that stands for ``/`` of a board with clocks: plain files; what was set is what is read back."""

from __future__ import annotations

from pathlib import Path

NPU = "sys/class/devfreq/fdab0000.npu"
DDR = "sys/class/devfreq/dmc"
CPU = "sys/devices/system/cpu/cpufreq/policy0"

FILES = {
    f"{NPU}/governor": "rknpu_ondemand\n",
    f"{NPU}/available_governors": "rknpu_ondemand userspace performance\n",
    f"{NPU}/available_frequencies": "300000000 900000000 1000000000 1100000000\n",
    f"{NPU}/userspace/set_freq": "300000000\n",
    f"{NPU}/trans_stat": "     From  :   To\n   Total transition : 12\n",
    f"{DDR}/governor": "dmc_ondemand\n",
    f"{DDR}/available_governors": "dmc_ondemand userspace\n",
    f"{DDR}/available_frequencies": "528000000 2112000000\n",
    f"{DDR}/userspace/set_freq": "528000000\n",
    f"{CPU}/scaling_governor": "schedutil\n",
    f"{CPU}/scaling_available_governors": "schedutil userspace\n",
    f"{CPU}/scaling_available_frequencies": "408000 1800000\n",
    f"{CPU}/scaling_setspeed": "408000\n",
    f"{CPU}/stats/total_trans": "34\n",
    "sys/class/thermal/thermal_zone0/type": "soc-thermal\n",
    "sys/class/thermal/thermal_zone0/temp": "45000\n",
    "sys/class/thermal/thermal_zone0/trip_point_0_type": "passive\n",
    "sys/class/thermal/thermal_zone0/trip_point_0_temp": "75000\n",
    "sys/class/thermal/cooling_device0/type": "thermal-devfreq-0\n",
    "sys/class/thermal/cooling_device0/cur_state": "0\n",
    "sys/class/thermal/cooling_device0/max_state": "5\n",
    "sys/class/thermal/cooling_device0/stats/total_trans": "1\n",
    "proc/stat": "cpu  100 20 50 1000 9 6 7 0 30 0\ncpu0 100 20 50 1000 9 6 7 0 30 0\nbtime 1\n",
    "sys/kernel/debug/rknpu/load": "NPU load:  Core0:  3%, Core1:  0%, Core2:  0%,\n",
    "proc/loadavg": "0.52 0.58 0.59 1/467 12345\n",
}

GOVERNORS = (f"{NPU}/governor", f"{DDR}/governor", f"{CPU}/scaling_governor")


class FakeSysfs:
    """The folder, and a look at the files that pinning touches."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for path, text in FILES.items():
            self.set(path, text)
        for folder in (NPU, DDR):
            (root / folder / "cur_freq").symlink_to("userspace/set_freq")
        (root / CPU / "scaling_cur_freq").symlink_to("scaling_setspeed")
        (root / "run").mkdir()

    def set(self, path: str, text: str) -> None:
        """Write a file, as the board would."""
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def get(self, path: str) -> str:
        """Read a file."""
        return (self.root / path).read_text().strip()

    def governors(self) -> list[str]:
        """Of NPU, DDR and CPU."""
        return [self.get(path) for path in GOVERNORS]


BEFORE = ["rknpu_ondemand", "dmc_ondemand", "schedutil"]
PINNED = ["userspace", "userspace", "userspace"]
