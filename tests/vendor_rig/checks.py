"""What must hold for the stand-in NPU; tests run each check as it is, and on rigs broken on purpose."""

from __future__ import annotations

from tests.vendor_rig.conftest import MakeThinPath
from tests.vendor_rig.thin_path import SHAPES, random_inputs

LINE = 64
SUCCESS, MASKS = 0, (1, 2, 4, 3, 7)


def check_every_byte_counts(thin_path: MakeThinPath, soc: str, model: str) -> None:
    """A changed byte, wherever in the input, changes the output; the same input gives the same again."""
    path, size = thin_path(soc), SHAPES[soc, model].input_bytes
    base = random_inputs(size, 1)[0]
    places = [0, 7, 8, 15, 16, 63, 64, size // 2 + 9, size - LINE, size - 9, size - 1]
    changed = [base[:at] + bytes([base[at] ^ 0x80]) + base[at + 1 :] for at in places]
    seen = path.run(model, [base, *changed, base])
    assert seen.exit_code == 0, seen.log
    assert len(seen.outputs) == len(places) + 2, seen.log
    outputs = [SHAPES[soc, model].logical(output) for output in seen.outputs]
    assert outputs[0] == outputs[-1], "the same input gave another output"
    unseen = [at for at, output in zip(places, outputs[1:-1], strict=True) if output == outputs[0]]
    assert not unseen
    assert len(set(outputs)) == 1 + len(places)
    elsewhere = thin_path(soc, {"DMA_BASE": "0x40000000"}).run(model, [base])
    assert SHAPES[soc, model].logical(elsewhere.outputs[0]) == outputs[0], "addresses matter"


def check_ways_agree(thin_path: MakeThinPath, soc: str, model: str) -> None:
    """Zero copy, brought into the order NCHW, equals the copying API and memory from outside."""
    path, shape = thin_path(soc), SHAPES[soc, model]
    inputs = random_inputs(shape.input_bytes, 3)
    copied = path.run(model, inputs, "copying").outputs
    assert len(set(copied)) == len(inputs)
    for way in ("zero-copy", "outside"):
        assert [shape.logical(output) for output in path.run(model, inputs, way).outputs] == list(copied), way


def check_cores_agree(thin_path: MakeThinPath) -> None:
    """Every core mask of RK3588 gives the bytes of core 0, although the library cuts the work differently."""
    path, model = thin_path("rk3588"), "probe_wide"
    inputs = random_inputs(SHAPES["rk3588", model].input_bytes, 2)
    outputs = {path.run(model, inputs, core_mask=mask).outputs for mask in MASKS}
    assert len(outputs) == 1
    masks = {call["core_mask"] for call in path.board.trace() if call["call"] == "SUBMIT"}
    assert masks == set(MASKS), "not every mask reached the driver"


def check_outputs_are_written(thin_path: MakeThinPath, soc: str) -> None:
    """No line of a fresh output is still what it was."""
    model = "probe_chain"
    seen = thin_path(soc).run(model, random_inputs(SHAPES[soc, model].input_bytes, 1))
    assert seen.code("run") == SUCCESS, seen.log
    output = seen.outputs[0]
    lines = [output[at : at + LINE] for at in range(0, len(output), LINE)]
    assert bytes(LINE) not in lines, [number for number, line in enumerate(lines) if line == bytes(LINE)]


def check_syncs_matter(thin_path: MakeThinPath, soc: str) -> None:
    """Without one direction of cache maintenance the second result is wrong."""
    model = "probe_chain"
    inputs = random_inputs(SHAPES[soc, model].input_bytes, 2)
    right = thin_path(soc).run(model, inputs).outputs
    assert len(set(right)) == len(inputs)
    for fault in ("sync-to-device-dropped", "sync-from-device-dropped"):
        seen = thin_path(soc, {"FAULTS": fault}).run(model, inputs)
        assert seen.code("run") == SUCCESS, "the library does not notice"
        assert seen.outputs[1] != right[1], fault


def check_bounds(thin_path: MakeThinPath, soc: str) -> None:
    """The library takes a memory that is too small, and the NPU faults instead of writing behind it."""
    path, model = thin_path(soc), "probe_wide"
    inputs = random_inputs(SHAPES[soc, model].input_bytes, 1)
    enough = path.run(model, inputs, "outside")
    assert enough.code("run") == SUCCESS, enough.log
    small = path.run(model, inputs, "outside", internal=8192)
    assert small.code("set_internal_mem") == SUCCESS
    assert small.code("run") != SUCCESS, small.log
    assert "Page fault" in (path.board.folder / "kmsg").read_text()


def check_key(thin_path: MakeThinPath) -> None:
    """Another hash key: every output differs; calls, codes and the driver's trace do not."""
    for model in ("probe_pointwise", "probe_chain"):
        inputs = random_inputs(SHAPES["rk3588", model].input_bytes, 3)
        paths = [thin_path("rk3588", settings) for settings in ({}, {"KEY": "0xc0ffee"})]
        one, other = (path.run(model, inputs) for path in paths)
        assert one.calls == other.calls
        assert not set(one.outputs) & set(other.outputs)
        traces = [[{**call, "pid": 0} for call in path.board.trace()] for path in paths]
        assert traces[0] == traces[1]
