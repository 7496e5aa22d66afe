"""How commands are found in a page, so that none can hide from the tests that run them."""

from __future__ import annotations

from pathlib import Path

import pytest
from docs.command_words import calls
from markdown_blocks import blocks, commands, spans

PAGE = """\
# A page

    rknpu boards            # a comment

Text with `rknpu probe --board x` in it.

1. In a list:

    ```sh
    pytest suites -k 'a # b'
    cat > file <<END
    pytest is a word here
    END
    rknpu run \\
      -x
    ```

```console
$ rknpu init
wrote boards.toml

$ ls
```

    [[board]]

    no command, and nothing that is known

```toml title="boards.toml"
name = "a"
```
"""


@pytest.fixture
def page(tmp_path: Path) -> Path:
    file = tmp_path / "page.md"
    file.write_text(PAGE, encoding="utf-8")
    return file


def test_commands_are_found_whatever_holds_them(page: Path) -> None:
    found = [command for block in blocks(page) for command in commands(block)]
    assert [command.text for command in found] == [
        "rknpu boards",
        "pytest suites -k 'a # b'",
        "cat > file <<END\npytest is a word here\nEND",
        "rknpu run \\\n  -x",
        "rknpu init",
        "ls",
    ]
    assert [command.output for command in found] == [None] * 4 + ["wrote boards.toml\n\n", None]
    assert {command.place for command in found} == {"page.md:3", "page.md:9", "page.md:18"}


def test_blocks_say_what_they_are(page: Path) -> None:
    found = [(block.language, block.title) for block in blocks(page)]
    assert found == [
        ("sh", None),
        ("sh", None),
        ("console", None),
        ("toml", None),
        ("toml", "boards.toml"),
    ]


def test_what_is_spoken_of_is_found_with_its_line(page: Path) -> None:
    assert list(spans(page)) == [(5, "rknpu probe --board x")]


@pytest.mark.parametrize(
    ("text", "programs"),
    [
        ("rknpu probe --json | jq -r '.missing[] | .remedy'", ["rknpu", "jq"]),
        ("curl -s address | sudo sh", ["curl", "sudo"]),
        ("A=1 B='x y' pytest tests && ls; rm -r x", ["pytest", "ls", "rm"]),
        ("rknpu suggest-budgets RUN >> boards.toml", ["rknpu"]),
        ("cat > file <<END\nrm -r x\nEND", ["cat"]),
    ],
)
def test_every_program_of_a_command_is_seen(text: str, programs: list[str]) -> None:
    assert [words[0] for words in calls(text)] == programs
