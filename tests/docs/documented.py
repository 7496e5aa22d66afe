"""What becomes of each command of README and docs/: `TABLE` names those that are not simply run as they are.

A command that is not in the table is run as it stands in a prepared folder (`prepared_folder`) and has to end
with exit code 0. So a new one needs an entry only where that cannot be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec


@dataclass(frozen=True)
class Run:
    """A command that is run.

    ``exits`` are the exit codes that it may have, ``shows`` is a regular expression for its output.
    ``narrowed`` are options of pytest that leave out most of a long run (by PYTEST_ADDOPTS: the command stays
    as it is), ``where`` names what stands for placeholders. A command that a page has several times has its
    exit codes ``in_turn``.
    """

    exits: tuple[int, ...] = (0,)
    in_turn: tuple[int, ...] = ()
    shows: str = ""
    narrowed: str = ""
    where: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class NotRun:
    """A command that is not run here, and why. ``instead`` is (file, text): the test or script that does it.

    That its program, sub-command and options exist is checked all the same, where they are this project's.
    """

    reason: str
    instead: tuple[str, str] | None = None


ONE_REQUIREMENT = "--requirement SYNC-06 --board emu-rk3588"
OF_LAB = "--requirement SYNC-06 --board my-board"
INSTALLS = (".ci/run", "pip install --quiet --editable '.[toolkit,")
CI_RUNS_SUITES = (".ci/run", "complete pytest suites")
RIG = "takes root, qemu and packages from a registry; it has tests of its own, which CI runs"

TABLE: Mapping[str, Mapping[str, Run | NotRun]] = {
    "README.md": {
        "python3 -m venv .venv && .venv/bin/pip install -e '.[toolkit,dev]' && .venv/bin/pytest suites "
        "--rknpu-report rknpu-report": NotRun("installs from a registry; CI does it", INSTALLS),
        ".venv/bin/pytest tests": NotRun("the whole of the tests; CI runs them", (".ci/run", "pytest tests")),
        "rknpu probe --board my-board": Run(where={"my-board": "emu-rk3588"}),
        "mkdocs build --strict -f .mkdocs.yml": NotRun(
            "a test of its own builds the site and looks at it", ("tests/docs/test_site.py", '"--strict"')
        ),
        "rknpu run --soc rk3588 -x": Run(narrowed=ONE_REQUIREMENT, shows=r"SYNC-06 +pass"),
        "rknpu compile MODEL --soc rk3588": NotRun(
            "takes RKNN-Toolkit2 a while; those of another page are run",
            ("docs/command-line.md", "rknpu compile "),
        ),
        "rknpu compare RUN_A RUN_B": Run(where={"RUN_A": "last-good", "RUN_B": "rknpu-report"}),
        "rknpu suggest-budgets RUN": Run(where={"RUN": "timed"}, shows=r"(?m)^p99_ms = "),
        "rknpu history DIR": Run(where={"DIR": "reports"}),
        "rknpu report RUN": Run(where={"RUN": "rknpu-report"}, shows="report.html"),
        "rknpu bundle RUN": Run(where={"RUN": "rknpu-report"}, shows="rknpu-report.zip"),
        # 1: a clone that was changed since its last commit, as it is while somebody works on it
        "rknpu verify ARCHIVE": Run(exits=(0, 1), where={"ARCHIVE": "rknpu-report.zip"}),
    },
    "adding.md": {
        **{
            command: NotRun(
                "changes the clone; a test does it in a copy", ("tests/docs/test_adding.py", test)
            )
            for command, test in (
                ("python docs/generate.py", "def test_a_soc("),
                ("pytest suites --board emu-rk9999", "def test_a_soc("),
                ("pytest suites --requirement SYNC-17 --board emu-rk3588", "def test_a_requirement("),
                (
                    "pytest suites --requirement SYNC-17 --board emu-rk3588 "
                    "--rknpu-fault sync-to-device-dropped",
                    "def test_a_requirement(",
                ),
            )
        },
    },
    "command-line.md": {
        **dict.fromkeys(
            (
                "rknpu compile model.onnx --soc rk3588 --soc rk3576 --calibration samples.npz -o build",
                "rknpu compile --model mobilenet-v2 --boards lab.toml",
            ),
            Run(shows="rk3588.rknn") if find_spec("rknn") else Run(exits=(2,), shows="install it with"),
        ),
        "rknpu --install-completion": NotRun(
            "takes the shell that it is typed in", ("tests/cli/test_completion.py", "--install-completion")
        ),
    },
    "compare.md": {
        "pytest suites/latency --rknpu-baseline last-good": Run(
            exits=(1,), narrowed="--board emu-rk3588 -k baseline", shows="no latency verdict"
        ),
    },
    "farms.md": {
        "pytest suites --tag site=lab-2 --rknpu-per soc": Run(
            narrowed="--requirement SYNC-06", shows=r"(?m)^SYNC-06 +pass"
        ),
        **{
            f"labgrid-client -x farm.example:20408 -p opi-1 {command}": NotRun(
                "labgrid is no dependency; where it is there (in CI), a real coordinator is asked",
                ("tests/docs/test_farm_commands.py", command.split()[0]),
            )
            for command in ("create", "add-match '*/opi-1/*'", "set-tags soc=rk3588 bsp=1.3")
        },
    },
    "history.md": {
        'sqlite3 history.sqlite "SELECT run_id, count(*) FROM result JOIN run ON run.id = run '
        "WHERE outcome = 'fail' GROUP BY run_id\"": NotRun(
            "the program is no dependency; Python asks the same", ("tests/docs/test_snippets.py", "sqlite3 ")
        ),
    },
    "quick-start.md": {
        "python3 -m venv .venv && .venv/bin/pip install -e '.[toolkit,dev]'": NotRun(
            "installs from a registry; CI does it", INSTALLS
        ),
        ".venv/bin/pytest suites --rknpu-report rknpu-report": Run(narrowed=ONE_REQUIREMENT),
        ".venv/bin/pytest suites/sync --board emu-rk3588 --rknpu-fault sync-to-device-dropped": Run(
            exits=(1,), narrowed="-k create_mem-probe_pointwise", shows=r"(?m)^FAIL SYNC-01 "
        ),
    },
    "real-boards.md": {
        "pytest suites --boards lab.toml --rknpu-report rknpu-report": Run(narrowed=OF_LAB),
    },
    "results.md": {
        "jq -r 'select(.outcome == \"fail\") | [.board, .versions.runtime, .requirement[], .message] | @tsv' "
        "DIR/results.jsonl": Run(where={"DIR": "with-a-fault"}, shows=r"emu-rk3588\temulated .*\tSYNC-06\t"),
    },
    "sparse.md": {
        "pytest suites/sparse": Run(
            narrowed="--collect-only -q", shows="test_repeated_runs_give_the_same_bytes"
        ),
        "pytest suites/sparse --board 'sim-*'": Run(narrowed="--collect-only -q", shows="sim-rk3576"),
    },
    "submission.md": {
        "rknpu verify rknpu-report.zip": Run(exits=(0, 1)),
    },
    "tutorial.md": {
        "python3 -m venv ~/npu-env": NotRun("the folder has the environment of these tests", INSTALLS),
        "~/npu-env/bin/pip install pytest-rknpu": NotRun(
            "installs from a registry; CI installs the clone, tests/cli/test_wheel.py the wheel", INSTALLS
        ),
        "rknpu run --board emu-rk3588 --requirement SYNC-06 --rknpu-seed 7 --rknpu-fault "
        "sync-range-rounded-down --rknpu-report report": Run(in_turn=(1, 0, 1)),
        "rknpu run --rknpu-only "
        "'sync/test_cache_lines.py::test_a_memory_that_ends_within_a_line[emu-rk3588]' "
        "--boards boards.toml --rknpu-seed 7 --board emu-rk3588 --rknpu-fault sync-range-rounded-down": Run(
            exits=(1,)
        ),
        "rknpu waivers": Run(exits=(1,)),
    },
    "vendor-rig.md": {
        "pytest tests/vendor_rig": NotRun(RIG, (".ci/run", "pytest tests")),
        "RKNPU_TEST_FULL=1 pytest tests/vendor_rig": NotRun(
            RIG, ("tests/vendor_rig/conftest.py", "RKNPU_TEST_FULL")
        ),
        "python -m tests.vendor_rig vendor-rk3588 --soc rk3588": NotRun(RIG),
        "pytest suites --boards vendor-rk3588/boards.toml": NotRun(RIG),
    },
}
"""By page, by command as the page has it (without its comment)."""
