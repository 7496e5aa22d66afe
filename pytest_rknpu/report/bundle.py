"""What one hands in: a run with all that belongs to it, in one archive that can be checked.

The archive is a ZIP file. ``manifest.json`` in it names every other file with its SHA-256, and says which
plugin made the run, in which state.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from xml.etree import ElementTree

from pytest_rknpu import __version__
from pytest_rknpu.errors import ConfigurationError
from pytest_rknpu.report.matrix import Cell, matrix_of
from pytest_rknpu.report.results import FILE_NAME, Results, parse_results
from pytest_rknpu.report.whole_file import write_whole
from pytest_rknpu.verdict import Outcome, require_known

SCHEMA = "pytest-rknpu/bundle-1"
MANIFEST = "manifest.json"
BOARDS = "boards.json"
_SUFFIX = ".zip"
_TAKEN = (FILE_NAME, BOARDS, "report.html", "junit/*.xml")
_LARGEST_BYTES = 1 << 30
_WHEN = (1980, 1, 1, 0, 0, 0)  # so that the same run gives the same archive


@dataclass(frozen=True)
class Coverage:
    """Requirements that must pass: ``missing`` are (requirement, board, what there is instead of a pass)."""

    missing: tuple[tuple[str, str, str], ...]
    met: int


def read_must_pass(path: Path) -> tuple[str, ...]:
    """The requirement ids of a file: one a line, ``#`` begins a comment. Raises ConfigurationError."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path}: cannot be read: {error}") from None
    lines = [line.partition("#")[0].strip() for line in text.splitlines()]
    ids = require_known([line for line in lines if line], str(path))
    if not ids:
        raise ConfigurationError(f"{path}: names no requirement; give one id a line, such as SYNC-01")
    return tuple(dict.fromkeys(ids))


def coverage_of(results: Results, must_pass: Iterable[str]) -> Coverage:
    """Hold a run against the requirements that must pass on each of its boards."""
    matrix = matrix_of(results.tests)
    missing = []
    met = 0
    for id in must_pass:
        for board in results.run.boards:
            cell = matrix.get(id, {}).get(board.name)
            if cell is not None and cell.outcome is Outcome.PASS:
                met += 1
            else:
                missing.append((id, board.name, _instead(cell)))
    return Coverage(tuple(missing), met)


def _instead(cell: Cell | None) -> str:
    return "no test ran" if cell is None else str(cell)


def write_bundle(folder: Path, output: Path, must_pass: Sequence[str], own_files: Mapping[str, Path]) -> None:
    """Put the report ``folder`` into the archive ``output``.

    ``own_files`` are the plugin's, whose hash goes into the manifest. Raises ConfigurationError: no results
    there, or ``output`` cannot be written.
    """
    results = _results_in(folder)
    files = {name: path.read_bytes() for name, path in _report_files(folder)}
    manifest = {
        "schema": SCHEMA,
        "run_id": results.run.run_id,
        "plugin": {
            "version": results.run.plugin,
            "git": results.run.git,
            "dirty": bool(results.run.git and results.run.git.endswith("-dirty")),
            "packed_by": __version__,
            "sha256": _hash_of_all({name: path.read_bytes() for name, path in own_files.items()}),
        },
        "waivers": results.run.waivers,
        "must_pass": list(must_pass),
        "files": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
    }
    text = json.dumps(manifest, indent=1, sort_keys=True).encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in {MANIFEST: text, **files}.items():
            archive.writestr(zipfile.ZipInfo(name, _WHEN), data, zipfile.ZIP_DEFLATED)
    try:
        write_whole(output, packed.getvalue())
    except OSError as error:
        raise ConfigurationError(f"{output}: cannot be written: {error.strerror or error}") from None


def _results_in(folder: Path) -> Results:
    path = folder / FILE_NAME
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror or error}; give a report folder") from None
    return parse_results(text, str(path))


def _report_files(folder: Path) -> Iterator[tuple[str, Path]]:
    for pattern in _TAKEN:
        for path in sorted(folder.glob(pattern)):
            yield path.relative_to(folder).as_posix(), path


def _hash_of_all(files: Mapping[str, bytes]) -> str:
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(f"{name}\0{hashlib.sha256(files[name]).hexdigest()}\n".encode())
    return digest.hexdigest()


# Reading one again


@dataclass(frozen=True)
class Bundle:
    """An archive that was read: nothing in it is trusted yet."""

    path: Path
    manifest: Mapping[str, Any]
    files: Mapping[str, bytes]


def is_bundle(path: Path) -> bool:
    """Whether a path is that of an archive, by its name."""
    return path.suffix == _SUFFIX and path.is_file()


def read_bundle(path: Path) -> Bundle:
    """Read an archive into memory. Raises ConfigurationError for what is none."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            if sum(entry.file_size for entry in entries) > _LARGEST_BYTES:
                raise ConfigurationError(f"{path}: unpacks to more than {_LARGEST_BYTES >> 20} MiB")
            files = {entry.filename: archive.read(entry) for entry in entries}
        manifest = json.loads(files.pop(MANIFEST))
        if manifest["schema"] != SCHEMA or not isinstance(manifest["files"], dict):
            raise ValueError(f"schema {manifest['schema']!r}; this version reads {SCHEMA!r}")
    except OSError as error:
        raise ConfigurationError(f"{path}: {error.strerror or error}") from None
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, KeyError, TypeError, ValueError) as error:
        raise ConfigurationError(f"{path}: no bundle: {type(error).__name__}: {error}") from None
    return Bundle(path, manifest, files)


def results_of(bundle: Bundle) -> Results:
    """The run in an archive. Raises ConfigurationError."""
    data = bundle.files.get(FILE_NAME)
    if data is None:
        raise ConfigurationError(f"{bundle.path}: has no {FILE_NAME}")
    return parse_results(data.decode("utf-8", "replace"), f"{bundle.path}:{FILE_NAME}")


def problems_of(bundle: Bundle) -> list[str]:
    """Everything for which an archive is not to be taken at its word; empty where it is."""
    found = list(_altered(bundle))
    try:
        results = results_of(bundle)
    except ConfigurationError as error:
        return [*found, str(error)]
    if results.torn:
        found.append("the run was cut off: the last line of its results is torn")
    for key, value in (("run_id", results.run.run_id), ("waivers", results.run.waivers)):
        if bundle.manifest.get(key) != value:
            found.append(f"manifest: {key} is {bundle.manifest.get(key)!r}, the results say {value!r}")
    plugin = bundle.manifest.get("plugin", {})
    if not isinstance(plugin, dict) or plugin.get("dirty") is not False:
        found.append("the plugin was changed after its last commit: nobody knows what ran")
    found += _contradictions(bundle, results)
    red = [result for result in results.tests if result.outcome.red]
    if red:
        found.append(f"{len(red)} tests did not pass, the first: {red[0].nodeid} ({red[0].outcome})")
    must_pass = bundle.manifest.get("must_pass")
    ids = must_pass if isinstance(must_pass, list) else []
    found += [
        f"{id} on {board}: {instead}" for id, board, instead in coverage_of(results, map(str, ids)).missing
    ]
    return found


def _altered(bundle: Bundle) -> Iterator[str]:
    listed = bundle.manifest["files"]
    for name in sorted({*listed, *bundle.files}):
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts:
            yield f"{name}: leads out of the archive"
        elif name not in bundle.files:
            yield f"{name}: is named by the manifest, and missing"
        elif name not in listed:
            yield f"{name}: is not named by the manifest"
        elif hashlib.sha256(bundle.files[name]).hexdigest() != listed[name]:
            yield f"{name}: was changed after it was packed"


def _contradictions(bundle: Bundle, results: Results) -> Iterator[str]:
    """Where a board's JUnit file and the results do not say the same."""
    for board in results.run.boards:
        own = [str(result.outcome) for result in results.tests if result.board == board.name]
        if not own:
            continue
        name = f"junit/{board.name}.xml"
        data = bundle.files.get(name)
        if data is None:
            yield f"{name}: missing, although {len(own)} tests ran on {board.name}"
            continue
        try:
            root = ElementTree.fromstring(data)
        except ElementTree.ParseError as error:
            yield f"{name}: no XML: {error}"
            continue
        path = "properties/property[@name='outcome']"
        said = [case.find(path) for case in root.iter("testcase")]
        outcomes = [each.get("value") if each is not None else None for each in said]
        if sorted(map(str, outcomes)) != sorted(own):
            yield f"{name}: its outcomes are not those of {FILE_NAME}"
