"""Rendering with another Python environment: its own OME and its own engine plugins."""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ome import __version__
from ome.api import OmeError, Problem
from ome.cli.input import chosen_engines
from ome.cli.output import warn
from ome.engines.discovery import plain_name
from ome.engines.engines import Engines
from ome.planning.rendered import PROTOCOL, Rendered

__all__ = ["OtherSide", "render_with", "versions_changed"]

_MODULE: Final = "ome.cli.handover"
# What would make the other interpreter import from somewhere else than its own environment.
_NOT_INHERITED: Final = frozenset({"PYTHONPATH", "PYTHONHOME", "__PYVENV_LAUNCHER__"})


@dataclass(frozen=True, slots=True)
class OtherSide:
    """What the other environment rendered, and its versions by name."""

    services: tuple[Rendered, ...]
    versions: Mapping[str, str]


def render_with(python: str, options: argparse.Namespace, path: str) -> OtherSide:
    """Render the services of a path with the OME and the plugins of another interpreter.

    Raises OmeError that names the interpreter and says what is wrong with it.
    """
    names = chosen_engines(options.engines)
    request = {
        "protocol": PROTOCOL,
        "filename": [path],
        "recursive": options.recursive,
        "namespace": options.namespace,
        "ome_namespace": options.ome_namespace,
        "engines": None if names is None else sorted(names),
    }
    answer = _ask(python, request)
    if answer["protocol"] != PROTOCOL:
        text = (
            f"its ome {answer['ome']} speaks protocol {answer['protocol']}, this ome {__version__} "
            f"speaks {PROTOCOL}"
        )
        raise _unusable(python, text, "upgrade the older of the two")
    if names is not None and not set(answer["engines"]) <= {*map(plain_name, names)}:
        raise _unusable(python, "its ome is too old to be told --engines", "upgrade ome there")
    for failed in answer["failed"]:
        warn(Problem("EnginePluginFailed", f"before: engine plugin {failed}"))
    if "faults" in answer:
        raise OmeError(
            *(
                Problem("OtherSideRefuses", f"before, with {python}: {each}")
                for each in answer["faults"]
            )
        )
    versions = {"ome": answer["ome"]}
    versions |= {f"plugin {name}": version for name, version in answer["engines"].items()}
    try:
        services = tuple(Rendered.from_json(each) for each in answer["services"])
    except (KeyError, TypeError) as error:
        raise _unreadable(python, f"{type(error).__name__}: {error}") from None
    return OtherSide(services, versions)


def versions_changed(before: Mapping[str, str], engines: Engines) -> str:
    """What differs between the other environment and this one, in words."""
    after = {"ome": __version__}
    after |= {f"plugin {engine.name}": engine.version for engine in engines}
    changed = [
        f"{name} {before.get(name, 'absent')} -> {after.get(name, 'absent')}"
        for name in sorted({*before, *after}, key=lambda each: (each != "ome", each))
        if before.get(name) != after.get(name)
    ]
    return " and ".join(changed) or "another build of the same versions"


def _ask(python: str, request: Mapping[str, Any]) -> dict[str, Any]:
    environment = {key: value for key, value in os.environ.items() if key not in _NOT_INHERITED}
    environment["PYTHONSAFEPATH"] = "1"  # nothing is imported from the current directory
    try:
        done = subprocess.run(
            [python, "-m", _MODULE, json.dumps(request)],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
    except OSError as error:
        raise _unusable(python, f"{error.strerror}", "name a Python interpreter") from None
    if done.returncode != 0:
        raise _failed(python, done.returncode, done.stderr.decode("utf-8", "replace"))
    try:
        answer = json.loads(done.stdout)
        complete = {"protocol", "ome", "engines", "failed"} <= answer.keys()
    except (ValueError, AttributeError):
        complete = False
    if not complete:
        raise _unreadable(python, "it is no answer of ome")
    found: dict[str, Any] = answer
    return found


def _failed(python: str, code: int, text: str) -> OmeError:
    """Why the other interpreter gave no answer."""
    if re.search(r"No module named '?ome'?(?![.\w])", text):
        fix = f"{python} -m pip install ome"
        return _unusable(python, "ome isn't installed there", fix)
    if re.search(rf"No module named '?{re.escape(_MODULE)}\b", text):
        return _unusable(python, "its ome is too old to be compared with", "upgrade ome there")
    last = text.strip().splitlines()[-1] if text.strip() else "it says nothing"
    return _unusable(python, f"it ended with code {code}: {last}", "")


def _unreadable(python: str, why: str) -> OmeError:
    return _unusable(python, f"its answer can't be read: {why}", "")


def _unusable(python: str, why: str, fix: str) -> OmeError:
    return OmeError(Problem("OtherSideUnusable", f"--before-python {python}: {why}", fix=fix))
