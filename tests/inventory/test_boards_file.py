"""boards.toml: what is taken, and what each mistake is told."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.inventory.schema import Board, load_boards

CLONE = Path(__file__).parents[2]
FARM = 'name = "one"\nsoc = "rk3588"\nruntime = "librknnrt"\ntransport = "labgrid"\n'
SIMULATOR = 'name = "one"\nsoc = "rk3588"\nruntime = "simulator"\n'
EMULATOR = 'name = "one"\nsoc = "rk3588"\nruntime = "emulator"\n'
REAL = 'name = "one"\nsoc = "rk3588"\nhost = "192.0.2.7"\n'


@pytest.fixture
def write(tmp_path: Path):
    """Write a boards.toml and return its path."""

    def write(text: str | bytes) -> Path:
        file = tmp_path / "boards.toml"
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        return file

    return write


def refusal(path: Path) -> str:
    with pytest.raises(ConfigurationError) as caught:
        load_boards(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message.removeprefix(f"{path}: ")


def test_every_kind_of_board(write) -> None:
    file = write(
        '[[board]]\nname = "emu"\nsoc = "RK3588S"\nruntime = "emulator"\nseed = 7\n'
        'runtime_version = "1.6.0"\ndriver_version = "0.9.8"\ntags = { site = "lab" }\nnote = "a note"\n'
        '[[board]]\nname = "sim"\nsoc = "rk3576"\nruntime = "simulator"\n'
        '[[board]]\nname = "far"\nsoc = "rk3568"\nruntime = "librknnrt"\ntransport = "ssh"\n'
        'host = "farm.example"\nuser = "root"\nport = 2222\npython = "/usr/bin/python3.9"\n'
        'library = "/opt/a b/librknnrt.so"\n'
        '[[board]]\nname = "here"\nsoc = "rv1106"\nruntime = "librknnrt"\ntransport = "local"\n'
    )
    loaded = load_boards(file)
    assert loaded.path == file
    emu, sim, far, here = loaded.boards
    assert [board.evidence for board in loaded.boards] == ["emulator", "simulator", "hardware", "hardware"]
    assert (emu.soc, emu.seed, emu.tags, emu.runtime_version) == ("rk3588", 7, {"site": "lab"}, "1.6.0")
    assert sim.chip.name == "rk3576"
    assert (far.host, far.port, far.library_path) == ("farm.example", 2222, "/opt/a b/librknnrt.so")
    assert (here.transport, here.python, here.library_path) == ("local", "python3", "librknnmrt.so")


def test_three_lines_describe_a_board_over_ssh(write) -> None:
    (board,) = load_boards(write("[[board]]\n" + REAL)).boards
    assert (board.runtime, board.transport, board.evidence) == ("librknnrt", "ssh", "hardware")


def test_text_of_other_systems_is_read(write) -> None:
    text = ("[[board]]\n" + EMULATOR).replace("\n", "\r\n")
    assert len(load_boards(write(b"\xef\xbb\xbf" + text.encode())).boards) == 1


def test_ssh_config_starts_at_the_folder_of_the_file(write, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    for given, expected in [
        ("farm/config", str(tmp_path / "farm/config")),
        ("/etc/farm", "/etc/farm"),
        ("~/farm", "/home/somebody/farm"),
    ]:
        (board,) = load_boards(write(f'[[board]]\n{REAL}ssh_config = "{given}"\n')).boards
        assert board.ssh_config == expected


def test_the_shipped_file_has_two_kinds_of_boards() -> None:
    boards = load_boards(CLONE / "boards.toml").boards
    assert {board.evidence for board in boards} == {"emulator", "simulator"}
    assert {(board.soc, board.evidence) for board in boards} >= {
        ("rk3588", "emulator"),
        ("rk3576", "emulator"),
        ("rv1106", "emulator"),
        ("rk3588", "simulator"),
        ("rk3576", "simulator"),
    }


def test_the_example_in_the_shipped_file_is_right(write) -> None:
    text = (CLONE / "boards.toml").read_text()
    example = "".join(
        line.removeprefix("# ") + "\n"
        for line in text.splitlines()
        if line.startswith("# ") and ("[[" in line or " = " in line)
    )
    (board,) = load_boards(write(example)).boards
    assert board.evidence == "hardware"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", ["names no board", "rknpu init"]),
        ("# nothing\n", ["names no board"]),
        ("board = []\n", ["names no board"]),
        ("[board]\n" + EMULATOR, ["[[board]]", "two brackets"]),
        ("board = 3\n", ["[[board]]"]),
        ("board = [3]\n", ["[[board]]"]),
        ("[[boards]]\n" + EMULATOR, ['unknown top-level key "boards"', 'did you mean "board"']),
        ("x = 1\n[[board]]\n" + EMULATOR, ['unknown top-level key "x"']),
        ("[[board]]\nname = one\n", ["not valid TOML", "line 2"]),
        ("[[board]]\nname = 'a'\nname = 'b'\n", ["not valid TOML", "line 3"]),
        ("a = " + "[" * 5000, ["not valid TOML", "nested"]),
        ("a = " + "9" * 5000, ["not valid TOML"]),
        (b"[[board]]\nname = '\xff'\n", ["not UTF-8", "byte 18"]),
    ],
)
def test_files_that_are_no_boards_file(write, text: str | bytes, words: list[str]) -> None:
    message = refusal(write(text))
    assert all(word in message for word in words), message


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    assert "no such file" in refusal(tmp_path / "missing.toml")
    assert "cannot be read" in refusal(tmp_path)
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_boards(Path("nul\0byte"))
    if os.path.exists("/dev/zero"):
        assert refusal(Path("/dev/zero")) == "has more than 16 MiB; is it a boards.toml?"


def test_of_very_many_mistakes_the_first_are_told(write) -> None:
    message = refusal(write("".join(f'[[board]]\nname = "b{n}"\nsoc = "rk0"\n' for n in range(500))))
    assert "[[board]] 1 " in message
    assert message.endswith("more problems")
    assert len(message) < 20_000


@pytest.mark.parametrize(
    ("table", "words"),
    [
        # unknown keys
        (EMULATOR + "sed = 3\n", ['unknown key "sed"', 'did you mean "seed"']),
        (EMULATOR + "frobnicate = 1\n", ['unknown key "frobnicate"', "known: name, soc, runtime"]),
        # missing keys
        ('name = "one"\n', ['key "soc": missing', 'key "runtime": missing']),
        (
            'name = "one"\nsoc = "rk3588"\nruntime = "librknnrt"\n',
            ['key "transport": missing', '"ssh", "adb" or "local"'],
        ),
        ('name = "one"\nsoc = "rk3588"\nruntime = "librknnrt"\ntransport = "ssh"\n', ['key "host": missing']),
        # values
        (EMULATOR.replace("rk3588", "rk3589"), ['key "soc": unknown SoC "rk3589"', 'did you mean "rk3588"']),
        (EMULATOR.replace("rk3588", "rk1808"), ['key "soc"', "RKNPU1"]),
        (
            EMULATOR.replace("emulator", "emulate"),
            ['key "runtime": must be "emulator", "simulator", "librknnrt" or "connected"'],
        ),
        (EMULATOR.replace('"one"', '"One"'), ['key "name": must be lower-case', 'not "One"']),
        (EMULATOR.replace('"one"', '"-one"'), ['key "name"']),
        (EMULATOR.replace('"one"', '"one\\n"'), ['key "name"', r"\n"]),
        (EMULATOR.replace('"one"', '"rk3576"'), ['key "name": "rk3576" is another SoC', "rk3588"]),
        (EMULATOR.replace('"one"', '"' + "a" * 65 + '"'), ['key "name"', "64"]),
        (EMULATOR + "seed = -1\n", ['key "seed": must be greater than or equal to 0', "not -1"]),
        (EMULATOR + "seed = true\n", ['key "seed": must be a whole number, not True']),
        (EMULATOR + 'seed = "7"\n', ['key "seed": must be a whole number, not "7"']),
        (EMULATOR + "seed = 7.0\n", ['key "seed": must be a whole number']),
        (EMULATOR + 'runtime_version = "newest"\n', ['key "runtime_version": must be a version such as']),
        (EMULATOR + 'tags = "lab"\n', ['key "tags": must be a table, not "lab"']),
        (
            EMULATOR + 'tags = { site = "lab", shelf = 3 }\n',
            ['key "tags", key "shelf": must be a text in quotes, not 3'],
        ),
        (EMULATOR + 'tags = { site = "a b" }\n', ['key "tags", key "site": must be keys of', 'not "a b"']),
        (EMULATOR + 'tags = { "a b" = "x" }\n', ['key "tags", key "a b"', "must be keys of"]),
        (EMULATOR + "note = 2024-01-01\n", ['key "note": must be a text in quotes']),
        (EMULATOR + 'note = "\\u001b[31m"\n', ['key "note": must have no control characters']),
        (REAL + "port = 0\n", ['key "port"']),
        (REAL + "port = 65536\n", ['key "port"']),
        # keys out of place
        (
            EMULATOR + 'transport = "local"\n',
            ['key "transport": an emulated board is local without it', "remove it"],
        ),
        (SIMULATOR + 'transport = "ssh"\n', ['key "transport": only for runtime = "librknnrt" or']),
        (FARM, ['key "place": transport = "labgrid" needs either place or filter']),
        (FARM + 'place = "a"\nfilter = { soc = "rk3588" }\n', ["needs either place or filter"]),
        (FARM + 'place = "a b"\n', ['key "place": must be the name of a labgrid place']),
        (FARM + 'place = "a"\nhost = "h"\n', ['key "host": only for transport = "ssh"']),
        (FARM + 'place = "a"\ncoordinator = "-o x"\n', ['key "coordinator": must be `host:port`']),
        (FARM + 'filter = { Soc = "rk3588" }\n', ['key "filter", key "Soc"', "must be keys of"]),
        (REAL + 'filter = { soc = "rk3588" }\n', ['key "filter": only for transport = "labgrid"']),
        (EMULATOR + "port = 22\n", ['key "port": only for transport = "ssh"', "no transport"]),
        (EMULATOR + 'host = "a"\n', ['key "host": only for transport = "ssh"']),
        (EMULATOR + 'python = "python3"\n', ['key "python": only for transport = "ssh"']),
        (REAL + "seed = 1\n", ['key "seed": only for runtime = "emulator"', 'runtime = "librknnrt"']),
        (REAL + "faults = []\n", ['key "faults": only for runtime = "emulator"']),
        (REAL + 'transport = "local"\n', ['key "host": only for transport = "ssh"', 'transport = "local"']),
        (
            EMULATOR.replace("emulator", "simulator") + 'runtime_version = "2.3.2"\n',
            ['key "runtime_version"'],
        ),
        (EMULATOR.replace("one", "a" * 65), ['key "name": must have at most 64 characters, not']),
    ],
)
def test_tables_with_a_mistake(write, table: str, words: list[str]) -> None:
    message = refusal(write("[[board]]\n" + table))
    assert message.startswith("[[board]] 1"), message
    assert all(word in message for word in words), message


@pytest.mark.parametrize("key", ["host", "user", "python", "ssh_config", "library"])
@pytest.mark.parametrize("value", ["-oProxyCommand=x", "a\\tb", "a\\u001bb", ""])
def test_words_that_ssh_would_read_as_more_than_a_word(write, key: str, value: str) -> None:
    table = "".join(line + "\n" for line in REAL.splitlines() if not line.startswith(f"{key} "))
    table += 'runtime = "librknnrt"\ntransport = "ssh"\n'
    assert f'key "{key}"' in refusal(write(f'[[board]]\n{table}{key} = "{value}"\n'))


@pytest.mark.parametrize("key", ["host", "user", "python"])
@pytest.mark.parametrize(
    "value",
    ["a b", "a;b", "$(a)", "`a`", "a|b", "a&b", "a'b", 'a\\"b', "a\\\\b", "*", "a//b", "a>b", "a@b", "~a"],
)
def test_words_that_a_shell_would_read_as_more_than_a_word(write, key: str, value: str) -> None:
    table = "".join(line + "\n" for line in REAL.splitlines() if not line.startswith(f"{key} "))
    table += 'runtime = "librknnrt"\ntransport = "ssh"\n'
    assert f'key "{key}"' in refusal(write(f'[[board]]\n{table}{key} = "{value}"\n'))


@pytest.mark.parametrize("host", ["farm.example", "192.0.2.7", "fe80::1%eth0", "::1", "board_7", "Lab-3"])
def test_hosts_of_all_kinds(write, host: str) -> None:
    (board,) = load_boards(write("[[board]]\n" + REAL.replace("192.0.2.7", host))).boards
    assert board.host == host


def test_all_mistakes_are_told_at_once(write) -> None:
    message = refusal(
        write('[[board]]\nname = "a"\nsoc = "x"\nruntime = "emulator"\n[[board]]\n' + EMULATOR + "nope = 1\n")
    )
    assert '[[board]] 1 ("a"), key "soc"' in message
    assert '[[board]] 2 ("one"), unknown key "nope"' in message


def test_duplicate_names(write) -> None:
    message = refusal(write(f"[[board]]\n{EMULATOR}[[board]]\n{EMULATOR}"))
    assert '[[board]] 2 ("one"), key "name": taken by [[board]] 1' in message


def test_faults_are_those_of_the_emulator(write) -> None:
    from pytest_rknpu.emulator import FAULTS

    known = sorted(FAULTS)
    (board,) = load_boards(write(f"[[board]]\n{EMULATOR}faults = {known}\n")).boards
    assert list(board.faults) == known
    chosen = "sync-bidirectional-one-side:does=from-device"
    (board,) = load_boards(write(f'[[board]]\n{EMULATOR}faults = ["{chosen}"]\n')).boards
    assert board.faults == (chosen,)
    message = refusal(write(f'[[board]]\n{EMULATOR}faults = ["{chosen}s"]\n'))
    assert 'key "faults": fault' in message
    assert "does=to-device|from-device" in message
    message = refusal(write(f'[[board]]\n{EMULATOR}faults = ["{known[0]}x"]\n'))
    assert f'key "faults": unknown fault "{known[0]}x"' in message
    assert f'did you mean "{known[0]}"' in message


def test_a_board_cannot_be_changed() -> None:
    board = Board(name="one", soc="rk3588", runtime="emulator")
    with pytest.raises(ValueError, match="frozen"):
        board.soc = "rk3576"  # type: ignore[misc]


def test_lease_keys_name_the_physical_thing(tmp_path: Path) -> None:
    def key(file: str = "boards.toml", **keys: object) -> str:
        return Board.model_validate({"name": "one", "soc": "rk3588"} | keys).lease_key(tmp_path / file)

    far = key(host="Farm.example")
    assert far == key("other.toml", host="farm.example", user="root", port=22)
    assert far != key(host="farm.example", port=2222)
    assert far != key(host="other.example")
    here = key(runtime="librknnrt", transport="local")
    assert here == key("other.toml", runtime="librknnrt", transport="local", library="/opt/librknnrt.so")
    soft = key(runtime="emulator")
    assert soft != key("other.toml", runtime="emulator")
    assert len({far, here, soft, key(runtime="simulator")}) == 4
