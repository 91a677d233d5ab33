"""`ome engines new`: the project of a new engine plugin."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ome.api import OmeError, Problem
from ome.cli.output import error
from ome.engines.discovery import discover
from ome.scaffold.new import names_of, render_project, write_project

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Write the project and list its files; exit code 1 when it can't be."""
    try:
        names = names_of(options.name)
        for engine in discover():
            if engine.name == options.name:
                text = f'there is an engine "{engine.name}" already, of {engine.distribution}'
                raise OmeError(Problem("EngineNameTaken", text, fix="choose another name"))
        directory = Path(options.directory or names["distribution"])
        project = render_project(options.name)
        write_project(project, directory)
    except OmeError as refused:
        for problem in refused.problems:
            error(problem)
        return 1
    for path in project:
        sys.stdout.write(f"{directory / path}\n")
    sys.stdout.write(
        f"\nInstall it with its tests:  cd {directory} && pip install --editable '.[test]' && pytest\n"
    )
    return 0
