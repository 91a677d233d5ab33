"""What another version of OME asks this one: render these files, and say with which versions.

`python -m ome.cli.handover REQUEST`, where REQUEST is a JSON object: `protocol`, `filename`, `recursive`,
`namespace`, `ome_namespace`, `engines` (the plugins to be used, as far as they are installed; null for
all). The answer is one JSON object on stdout: `protocol`, `ome` (its version), `engines` (versions by
name), `failed` (plugins that couldn't be loaded), and `services` or `faults`. The caller is
`ome diff --before-python`.
"""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import redirect_stdout
from importlib.metadata import entry_points
from typing import Any

from ome import __version__
from ome.api import OmeError
from ome.cli.input import read_objects, snapshot_of
from ome.engines.discovery import GROUP, discover
from ome.planning.diff import render_all
from ome.planning.rendered import PROTOCOL

__all__ = ["answer", "main"]


def _installed(names: list[str] | None) -> list[str] | None:
    """The names that this environment has: another may have plugins that this one lacks."""
    if names is None:
        return None
    there = {each.name.replace("_", "-") for each in entry_points(group=GROUP)}
    return [name for name in names if name.replace("_", "-") in there]


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """The answer to a request. A request of another protocol gets the versions only."""
    engines = discover(only=_installed(request.get("engines")))
    told: dict[str, Any] = {
        "protocol": PROTOCOL,
        "ome": __version__,
        "engines": {engine.name: engine.version for engine in engines},
        "failed": [
            f"{each.name} of {each.distribution}: {each.message}" for each in engines.errors
        ],
    }
    if request.get("protocol") != PROTOCOL:
        return told
    options = argparse.Namespace(**request)
    try:
        snapshot = snapshot_of(read_objects(options, engines), options, engines)
    except OmeError as refused:
        return {**told, "faults": [str(problem) for problem in refused.problems]}
    return {**told, "services": [each.as_json() for each in render_all(snapshot, engines)]}


def main(request: str) -> None:
    """Answer on stdout; whatever plugins print goes to stderr."""
    with redirect_stdout(sys.stderr):
        text = json.dumps(answer(json.loads(request)), ensure_ascii=False)
    sys.stdout.buffer.write(text.encode())


if __name__ == "__main__":
    main(sys.argv[1])
