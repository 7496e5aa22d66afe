"""What workers leave for their controller: taken once, and nothing of it stays behind."""

from __future__ import annotations

import threading
from pathlib import Path

from pytest_rknpu.farm.manifest import Manifest, Planned, take_manifest, write_manifest

PLANNED = Manifest({"test_it[a]": Planned("a", ("SYNC-01",), 7), "test_host": Planned(None, (), 8)}, None)


def test_what_was_written_is_taken_and_gone(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    write_manifest(folder, "gw0", PLANNED)
    write_manifest(folder, "gw1", Manifest({}, "no such board"))
    assert take_manifest(folder, "gw0") == PLANNED
    assert take_manifest(folder, "gw0") is None
    assert take_manifest(folder, "gw1") == Manifest({}, "no such board")
    assert not folder.exists()
    write_manifest(folder, "gw2", PLANNED)  # a worker that replaces one that died
    assert take_manifest(folder, "gw2") == PLANNED
    assert not folder.exists()


def test_a_worker_writes_while_the_controller_clears_away(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    failed: list[BaseException] = []

    def work(name: str) -> None:
        try:
            for _ in range(200):
                write_manifest(folder, name, PLANNED)
        except BaseException as error:
            failed.append(error)

    workers = [threading.Thread(target=work, args=(f"gw{number}",)) for number in range(2)]
    for worker in workers:
        worker.start()
    while any(worker.is_alive() for worker in workers):
        for number in range(2):
            take_manifest(folder, f"gw{number}")
    assert failed == []
