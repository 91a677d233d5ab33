"""What the `runtime` commands have in common: their input, their refusals, how a report is printed."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ome.api import InferenceService, OmeError
from ome.api.scalars import name_faults
from ome.cli.columns import fit_table, table
from ome.cli.input import read_engines, read_snapshot
from ome.cli.output import error, to_json, to_yaml
from ome.snapshot import Snapshot

__all__ = [
    "Refusal",
    "check_name",
    "find_service",
    "guarded",
    "namespace_of",
    "read_input",
    "terminal_width",
    "write_data",
    "write_table",
]


class Refusal(Exception):
    """The command can't answer; its message is what stderr gets."""


def guarded(run: Callable[[argparse.Namespace], None], options: argparse.Namespace) -> int:
    """Run a command; exit code 0, or 1 with its errors on stderr."""
    try:
        run(options)
    except OmeError as refused:
        for problem in refused.problems:
            error(problem)
        return 1
    except Refusal as refused:
        error(refused)
        return 1
    return 0


def namespace_of(options: argparse.Namespace) -> str:
    """The namespace that a command looks in."""
    return str(options.namespace or "default")


def read_input(options: argparse.Namespace) -> Snapshot:
    """The snapshot of the files. Raises Refusal without any, and UnreadableInput."""
    if not options.filename:
        raise Refusal("-f is required: this version of OME reads manifests, not a cluster")
    return read_snapshot(options, read_engines(options))


def check_name(what: str, name: str) -> None:
    """Raises Refusal for a name that Kubernetes wouldn't take."""
    if faults := name_faults(name):
        quoted = json.dumps(name, ensure_ascii=False)
        raise Refusal(f"{what} name {quoted} is invalid: {'; '.join(faults)}")


def find_service(
    snapshot: Snapshot, namespace: str, name: str, doing: str = ""
) -> InferenceService:
    """The InferenceService. Raises Refusal when it isn't there."""
    found = snapshot.service(namespace, name)
    if found is None:
        raise Refusal(f'{doing}inferenceservices.ome.io "{name}" not found')
    return found


def terminal_width() -> int | None:
    """The columns of the terminal that stdout is, None for a file or a pipe."""
    try:
        found = os.get_terminal_size(sys.stdout.fileno()).columns if sys.stdout.isatty() else 0
    except (OSError, ValueError):
        return None
    return found or None


def write_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table, one line a row; a terminal that is narrower wraps its cells."""
    width = terminal_width()
    text = table(header, rows) if width is None else fit_table(header, rows, width)
    sys.stdout.write(text)


def write_data(data: Mapping[str, Any], output: str) -> None:
    """A report as JSON or YAML."""
    sys.stdout.write(to_json(data) if output == "json" else to_yaml([data]))
