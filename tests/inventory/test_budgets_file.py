"""[[budget]] tables: what is taken, what each mistake is told, and which budget applies."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.inventory.budget_table import DEFAULT_ALPHA, DEFAULT_PROCESSES, DEFAULT_SAMPLES
from pytest_rknpu.inventory.budgets import budgets_for, core_mask_of, find_budget, one_core
from pytest_rknpu.inventory.pinned_clocks import PINNED_CLOCKS
from pytest_rknpu.inventory.schema import BoardsFile, load_boards
from pytest_rknpu.inventory.socs import SOCS
from pytest_rknpu.measure import quantiles

BOARDS = """
[[board]]
name = "lab"
soc = "rk3588"
host = "192.0.2.7"
[[board]]
name = "other"
soc = "rk3568"
host = "192.0.2.8"
[[board]]
name = "sim"
soc = "rk3576"
runtime = "simulator"
[[board]]
name = "tethered"
soc = "rv1106"
runtime = "connected"
"""


def read(tmp_path: Path, *tables: str, before: str = BOARDS) -> BoardsFile:
    file = tmp_path / "boards.toml"
    file.write_text(before + "".join(f"\n[[budget]]\n{table}\n" for table in tables))
    return load_boards(file)


def refusal(tmp_path: Path, *tables: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        read(tmp_path, *tables)
    message = str(caught.value)
    assert "\n" not in message
    return message.partition(": ")[2]


def test_a_whole_budget(tmp_path: Path) -> None:
    file = read(
        tmp_path,
        'model = "digits_cnn"\nsoc = "RK3588S"\ncore_mask = "0_1"\np50_ms = 2\np95_ms = 2.5\np99_ms = 3.0\n'
        "first_inference_ms = 20.0\ninit_ms = 150.0\nweight_bytes = 30000\ninternal_bytes = 50000\n"
        'samples = 3000\nprocesses = 10\nalpha = 0.01\nnote = "30 fps"',
    )
    (budget,) = file.budgets
    assert (budget.soc, budget.core_mask) == ("rk3588", "RKNN_NPU_CORE_0_1")
    assert budget.quantiles == {0.5: 2.0, 0.95: 2.5, 0.99: 3.0}
    assert (budget.samples, budget.processes, budget.alpha) == (3000, 10, 0.01)
    assert file.warnings == ()


def test_defaults(tmp_path: Path) -> None:
    (budget,) = read(tmp_path, 'model = "digits_cnn"\nboard = "lab"\np99_ms = 3.0').budgets
    assert budget.core_mask == "RKNN_NPU_CORE_0"
    assert (budget.samples, budget.processes, budget.alpha) == (1000, 5, 0.05)
    assert (DEFAULT_SAMPLES, DEFAULT_ALPHA) == (quantiles.DEFAULT_SAMPLES, quantiles.DEFAULT_ALPHA)
    assert DEFAULT_PROCESSES == 5
    assert read(tmp_path, 'model = "digits_cnn"\nsoc = "rk3568"\np99_ms = 3.0').budgets[0].core_mask is None
    assert read(tmp_path).budgets == ()


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ('soc = "rk3588"\np50_ms = 2.0', ['[[budget]] 1, key "model": missing']),
        (
            'model = "digits_cn"\nsoc = "rk3588"\np50_ms = 2.0',
            [
                '[[budget]] 1 ("digits_cn"), key "model": unknown model "digits_cn"',
                '(did you mean "digits_cnn"?)',
            ],
        ),
        ('model = "quite-different"\nsoc = "rk3588"\np50_ms = 2.0', ["there are ", "digits_cnn, "]),
        ('model = "digits_cnn"\np50_ms = 2.0', ['give one of the keys "soc" and "board"']),
        (
            'model = "digits_cnn"\nsoc = "rk3588"\nboard = "lab"\np50_ms = 2.0',
            ['give one of the keys "soc" and "board"'],
        ),
        (
            'model = "digits_cnn"\nsoc = "rk3589"\np50_ms = 2.0',
            ['key "soc": unknown SoC "rk3589" (did you mean "rk3588"?)'],
        ),
        (
            'model = "digits_cnn"\nboard = "labs"\np50_ms = 2.0',
            ['key "board": no board is called "labs" (did you mean "lab"?)'],
        ),
        (
            'model = "digits_cnn"\nboard = "sim"\np50_ms = 2.0',
            ['key "board": neither time nor memory is measured on runtime = "simulator"'],
        ),
        (
            'model = "digits_cnn"\nsoc = "rk3576"\ncore_mask = "2"\np50_ms = 2.0',
            ['key "core_mask": rk3576 has no core mask "2"; it has RKNN_NPU_CORE_AUTO, RKNN_NPU_CORE_0, '],
        ),
        (
            'model = "digits_cnn"\nboard = "other"\ncore_mask = "RKNN_NPU_CORE_0"\np50_ms = 2.0',
            ['key "core_mask": rk3568 has no core masks'],
        ),
        ('model = "digits_cnn"\nsoc = "rk3588"', ["budgets nothing; give one of p50_ms, "]),
        (
            'model = "digits_cnn"\nsoc = "rk3588"\np50_ms = 3.0\np99_ms = 2.0',
            ['key "p99_ms": 2 is below p50_ms = 3'],
        ),
        (
            'model = "digits_cnn"\nsoc = "rk3588"\np99_ms = 2.0\nsamples = 200',
            ['key "samples": 200 samples cannot decide p99 at alpha 0.05', "at least 299 are needed"],
        ),
        (
            'model = "digits_cnn"\nsoc = "rk3588"\np99_ms = 2.0\nsamples = 400\nalpha = 0.01',
            ["400 samples cannot decide p99 at alpha 0.01", "at least 459 are needed"],
        ),
        (
            'model = "digits_cnn"\nsoc = "rk3588"\ninit_ms = 2.0\nsamples = 3',
            ["3 samples cannot come from 5 processes"],
        ),
        ('model = "digits_cnn"\nsoc = "rk3588"\np50_ms = 0', ['key "p50_ms": must be greater than 0, not 0']),
        ('model = "digits_cnn"\nsoc = "rk3588"\np50_ms = "2 ms"', ['key "p50_ms": must be a']),
        ('model = "digits_cnn"\nsoc = "rk3588"\np50_ms = nan', ['key "p50_ms": must be']),
        ('model = "digits_cnn"\nsoc = "rk3588"\np50 = 2.0', ['unknown key "p50" (did you mean "p50_ms"?)']),
        (
            'model = "digits_cnn"\nsoc = "rk3588"\np50_ms = 2.0\nalpha = 0.7',
            ['key "alpha": must be less than or equal to 0.2, not 0.7'],
        ),
        ('model = "digits_cnn"\nsoc = "rk3588"\nweight_bytes = 1.5', ['key "weight_bytes": must be a']),
        ('model = "digits_cnn"\nsoc = "rk3588"\nweight_bytes = 0', ['key "weight_bytes": must be']),
        ('model = "digits_cnn"\nsoc = "rk3588"\np50_ms = inf', ['key "p50_ms": must be']),
        ('model = "digits_cnn"\nsoc = "rk3588"\np50_ms = -2.0', ['key "p50_ms": must be greater than 0']),
        ('model = "digits_cnn"\nsoc = "rk3588"\np50_ms = true', ['key "p50_ms": must be a']),
        ('model = "digits_cnn"\nsoc = "rk3588"\np50_ms = 2.0\nalpha = nan', ['key "alpha": must be']),
        (
            'model = "digits_cnn"\nsoc = "rk3588"\np50_ms = 2.0\nprocesses = 1',
            ['key "processes": must be greater than or equal to 2'],
        ),
        (
            'model = "digits_cnn"\nboard = "tethered"\np50_ms = 2.0',
            ['key "board": time is not judged on runtime = "connected": eval_perf gives means'],
        ),
    ],
)
def test_mistakes(tmp_path: Path, table: str, words: list[str]) -> None:
    message = refusal(tmp_path, table)
    for word in words:
        assert word in message


def test_two_budgets_for_one_thing(tmp_path: Path) -> None:
    """The default core mask and its name are the same."""
    one = 'model = "digits_cnn"\nsoc = "rk3588"\np50_ms = 2.0'
    message = refusal(tmp_path, one, one + '\ncore_mask = "rknn_npu_core_0"')
    assert '[[budget]] 2 ("digits_cnn"): [[budget]] 1 is for the same model, board and core mask' in message
    assert len(read(tmp_path, one, one.replace('soc = "rk3588"', 'board = "lab"')).budgets) == 2
    assert len(read(tmp_path, one, one + '\ncore_mask = "1"').budgets) == 2


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    message = refusal(tmp_path, 'model = "nothing"\nsoc = "rk3576"\ncore_mask = "9"\np50_ms = 1.0', "soc = 3")
    for word in ("unknown model", "has no core mask", '[[budget]] 2, key "model": missing', 'key "soc"'):
        assert word in message


@pytest.mark.parametrize("text", ["budget = 3", "[budget]\nmodel = 3", "budget = [1]"])
def test_what_is_no_list_of_tables(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigurationError, match=r"starts with \[\[budget\]\], in two brackets"):
        read(tmp_path, before=f"{text}\n{BOARDS}" if text.startswith("budget") else f"{BOARDS}{text}\n")


@pytest.mark.parametrize(
    ("figures", "warning"),
    [
        ("p50_ms = 0.0024", "p50_ms = 0.0024 looks like seconds; the unit is milliseconds"),
        ("p99_ms = 2400.0", "p99_ms = 2400 looks like microseconds; the unit is milliseconds"),
        ("init_ms = 0.09", "init_ms = 0.09 looks like seconds"),
        ("first_inference_ms = 20000.0", "first_inference_ms = 20000 looks like microseconds"),
        ("p50_ms = 2.0\np99_ms = 900.0", "quantiles from 2 to 900 ms look like two units"),
        ("internal_bytes = 512", "internal_bytes = 512 looks like KiB or MiB; the unit is bytes"),
    ],
)
def test_implausible_units_are_warned_of(tmp_path: Path, figures: str, warning: str) -> None:
    file = read(tmp_path, f'model = "digits_cnn"\nsoc = "rk3588"\n{figures}')
    (found,) = file.warnings
    assert found == f"[[budget]] for digits_cnn on rk3588: {warning}" or warning in found
    assert len(file.budgets) == 1


def test_a_budget_for_the_board_goes_before_one_for_its_soc(tmp_path: Path) -> None:
    file = read(
        tmp_path,
        'model = "digits_cnn"\nsoc = "rk3588"\np50_ms = 2.0',
        'model = "digits_cnn"\nboard = "lab"\np50_ms = 1.0',
        'model = "digits_cnn"\nsoc = "rk3588"\ncore_mask = "0_1"\np50_ms = 3.0',
    )
    lab, other, *_ = file.boards

    def found(board: object, model: str, mask: str | None) -> float | None:
        budget = find_budget(budgets_for(file.budgets, board), model, mask)
        return budget.p50_ms if budget else None

    assert found(lab, "digits_cnn", "RKNN_NPU_CORE_0") == 1.0
    assert found(lab, "digits_cnn", "RKNN_NPU_CORE_0_1") == 3.0
    assert found(lab, "digits_cnn", "RKNN_NPU_CORE_1") is None
    assert found(lab, "probe_wide", "RKNN_NPU_CORE_0") is None
    assert found(other, "digits_cnn", None) is None


def test_a_board_has_the_other_keys_of_its_soc(tmp_path: Path) -> None:
    """A board that is allowed more memory is timed by the same budget, and the other way round."""
    file = read(
        tmp_path,
        'model = "digits_cnn"\nsoc = "rk3588"\np50_ms = 2.0\nweight_bytes = 4096\nsamples = 3000',
        'model = "digits_cnn"\nboard = "lab"\nweight_bytes = 8192',
        'model = "probe_wide"\nboard = "lab"\np50_ms = 9.0',
    )
    lab, other, *_ = file.boards
    digits, wide = budgets_for(file.budgets, lab)
    assert (digits.p50_ms, digits.weight_bytes, digits.samples, digits.processes) == (2.0, 8192, 3000, 5)
    assert (digits.board, digits.soc, digits.core_mask) == ("lab", None, "RKNN_NPU_CORE_0")
    assert (wide.model, wide.p50_ms) == ("probe_wide", 9.0)
    assert budgets_for(file.budgets, other) == ()


@pytest.mark.parametrize(
    ("everywhere", "own", "words"),
    [
        ("p95_ms = 3.0", "p50_ms = 4.0", 'key "p95_ms": 3 is below p50_ms = 4'),
        ("p50_ms = 2.0\nsamples = 100", "p99_ms = 4.0", "100 samples cannot decide p99"),
    ],
)
def test_a_board_and_its_soc_that_clash(tmp_path: Path, everywhere: str, own: str, words: str) -> None:
    """Each makes sense by itself; what holds for the board does not."""
    tables = [
        f'model = "digits_cnn"\n{place}'
        for place in (f'soc = "rk3588"\n{everywhere}', f'board = "lab"\n{own}')
    ]
    message = refusal(tmp_path, *tables)
    assert '[[budget]] 2 ("digits_cnn"), with what [[budget]] 1 says of its SoC: ' in message
    assert words in message


def test_budgets_that_hold_for_nothing_are_warned_of(tmp_path: Path) -> None:
    """No board, or one on which nothing of it is measured: nobody would notice that it is not judged."""
    file = read(
        tmp_path,
        'model = "digits_cnn"\nsoc = "rk3566"\np50_ms = 2.0',
        'model = "digits_cnn"\nsoc = "rk3576"\np50_ms = 2.0',
        'model = "digits_cnn"\nsoc = "rv1106"\np50_ms = 2.0',
        'model = "probe_wide"\nsoc = "rv1106"\nweight_bytes = 4096',
        'model = "probe_wide"\nboard = "tethered"\nweight_bytes = 4096',
    )
    assert [warning.partition(":")[0] for warning in file.warnings] == [
        f"[[budget]] for digits_cnn on {soc}" for soc in ("rk3566", "rk3576", "rv1106")
    ]
    assert "holds for none" in file.warnings[0]


def test_core_masks_by_soc() -> None:
    assert one_core(SOCS["rk3588"]) == core_mask_of(SOCS["rk3588"], None) == "RKNN_NPU_CORE_0"
    assert one_core(SOCS["rv1106"]) is core_mask_of(SOCS["rv1106"], None) is None
    for soc in SOCS.values():
        for mask in soc.core_masks:
            assert core_mask_of(soc, mask.removeprefix("RKNN_NPU_CORE_").lower()) == mask


def test_every_soc_has_clocks_to_pin_to() -> None:
    assert set(PINNED_CLOCKS) == set(SOCS)
    for name, soc in SOCS.items():
        assert (PINNED_CLOCKS[name].npu is None) == (soc.npu_devfreq is None)


def test_pinning_is_for_boards_with_an_agent(tmp_path: Path) -> None:
    board = '[[board]]\nname = "a"\nsoc = "rk3588"\nruntime = "{}"\npin = true\nallow_unpinned = true\n'
    (emulated,) = read(tmp_path, before=board.format("emulator")).boards
    assert (emulated.pin, emulated.allow_unpinned) == (True, True)
    with pytest.raises(ConfigurationError, match='this board has runtime = "simulator"; remove it'):
        read(tmp_path, before=board.format("simulator"))


def test_latency_models_are_for_emulated_boards(tmp_path: Path) -> None:
    board = '[[board]]\nname = "a"\nsoc = "rk3588"\nruntime = "{}"\nlatency_model = "{}"\n'
    (emulated,) = read(tmp_path, before=board.format("emulator", "steady")).boards
    assert emulated.without_time is None
    with pytest.raises(
        ConfigurationError, match=r'unknown latency model "steddy" \(did you mean "steady"\?\)'
    ):
        read(tmp_path, before=board.format("emulator", "steddy"))
    with pytest.raises(ConfigurationError, match='only for runtime = "emulator"'):
        read(tmp_path, before=board.format("simulator", "steady"))


def test_boards_without_time_say_why(tmp_path: Path) -> None:
    lab, _, sim, _ = read(tmp_path).boards
    assert lab.without_time is None
    assert "says nothing of silicon" in str(sim.without_time)
