"""Which files a `-f` argument stands for, and their bytes. `kubectl`'s conventions."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from ome.api import Problem
from ome.sources.documents import UnreadableInput

__all__ = ["read_paths"]

_SUFFIXES: Final = (".yaml", ".yml", ".json")
MAX_BYTES: Final = 64 * 1024 * 1024


def read_paths(paths: Iterable[str], *, recursive: bool = False) -> Iterator[tuple[str, bytes]]:
    """The name and the bytes of every file: a file as it is, a directory's manifests by name, `-`
    for standard input. Raises UnreadableInput for what can't be read."""
    for argument in paths:
        if argument == "-":
            yield "<stdin>", sys.stdin.buffer.read()
            continue
        path = Path(argument)
        if path.is_dir():
            files = _manifests(path, recursive=recursive)
            if not files:
                hint = "" if recursive else "; -R also reads its subdirectories"
                raise _unreadable(argument, f"the directory has no .yaml, .yml or .json file{hint}")
        else:
            files = [path]
        for file in files:
            yield str(file), _read(file)


def _manifests(directory: Path, *, recursive: bool) -> list[Path]:
    found = directory.rglob("*") if recursive else directory.iterdir()
    return sorted(path for path in found if path.suffix in _SUFFIXES and path.is_file())


def _read(path: Path) -> bytes:
    try:
        if path.is_file() and path.stat().st_size > MAX_BYTES:
            raise _unreadable(str(path), f"it is larger than {MAX_BYTES // 2**20} MiB")
        return path.read_bytes()
    except OSError as error:
        raise _unreadable(str(path), error.strerror or str(error)) from None


def _unreadable(name: str, why: str) -> UnreadableInput:
    return UnreadableInput(Problem("FileUnreadable", why, where=name))
