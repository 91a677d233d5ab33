"""`ome engines new`: the project of a new engine plugin."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from ome.api import OmeError, Problem
from ome.cli.input import NO_ENGINES
from ome.cli.output import error
from ome.engines.discovery import discover, plain_name
from ome.scaffold.new import names_of, render_project, write_project

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Write the project and list its files; exit code 1 when it can't be."""
    try:
        names = names_of(options.name)
        _check_free(options.name)
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


def _check_free(name: str) -> None:
    """Raises OmeError for a name that an installed plugin has, loaded or not, or that means no plugin."""
    engines = discover()
    for each in (*engines, *engines.errors):
        if plain_name(each.name) == name:
            text = f'there is an engine "{name}" already, of {each.distribution}'
            raise OmeError(Problem("EngineNameTaken", text, fix="choose another name"))
    if name == NO_ENGINES:
        text = f'"{name}" can\'t be the name of an engine: `--engines {name}` uses no plugin'
        raise OmeError(Problem("EngineName", text, fix="choose another, such as my-engine"))
