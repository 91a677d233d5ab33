"""What the commands read: the installed engines and the manifests that the input flags name."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from ome.api import OmeError, Problem
from ome.cli.output import warn
from ome.engines.discovery import discover
from ome.engines.engines import Engines
from ome.snapshot import EVERY_API, PluginVersion, Snapshot
from ome.sources import InstalledPresets, Loaded, load, read_paths

__all__ = [
    "NO_ENGINES",
    "chosen_engines",
    "load_engines",
    "read_engines",
    "read_objects",
    "read_snapshot",
    "snapshot_of",
]

NO_ENGINES: Final = "none"
"""What `--engines` calls no plugin at all; no engine can have this name."""


def read_engines(options: argparse.Namespace) -> Engines:
    """The installed engine plugins, or those that `--engines` names; stderr gets what couldn't be loaded.

    Raises OmeError for a name that there isn't, and for a named plugin that can't be loaded.
    """
    engines = load_engines(options)
    for problem in (*_failures(engines), *engines.problems):
        warn(problem)
    return engines


def load_engines(options: argparse.Namespace) -> Engines:
    """The same, for one who tells in its own way what couldn't be loaded. Raises the same."""
    names = chosen_engines(options.engines)
    engines = discover(only=names)
    if names is not None and engines.errors:
        raise OmeError(*_failures(engines))
    return engines


def _failures(engines: Engines) -> list[Problem]:
    return [
        Problem(
            "EnginePluginFailed",
            f"engine plugin {failed.name} of {failed.distribution} isn't used: {failed.message}",
        )
        for failed in engines.errors
    ]


def chosen_engines(given: Sequence[str] | None) -> frozenset[str] | None:
    """The names that `--engines` gives: no name for `none`, and None without the flag. Raises OmeError."""
    if given is None:
        return None
    names = frozenset(name.strip() for each in given for name in each.split(","))
    if names == {NO_ENGINES}:
        return frozenset()
    if "" in names:
        text, fix = "a name is missing", f'name plugins, or "{NO_ENGINES}" to use no plugin'
    elif NO_ENGINES in names:
        text, fix = f'"{NO_ENGINES}" can\'t stand beside names', "remove it, or the names"
    else:
        return names
    raise OmeError(Problem("EngineUnknown", text, path="--engines", fix=fix))


def read_snapshot(options: argparse.Namespace, engines: Engines) -> Snapshot:
    """The snapshot that the input flags describe; prints what is worth a warning.

    Raises UnreadableInput.
    """
    loaded = read_objects(options, engines)
    snapshot = snapshot_of(loaded, options, engines)
    for problem in (*loaded.warnings, *snapshot.preset_problems):
        warn(problem)
    return snapshot


def read_objects(
    options: argparse.Namespace, engines: Engines, *, keep_places: bool = False
) -> Loaded:
    """The objects that the input flags name. Raises UnreadableInput."""
    return load(
        read_paths(options.filename, recursive=options.recursive),
        namespace=options.namespace or "default",
        ome_namespace=options.ome_namespace,
        presets=InstalledPresets(engines),
        keep_places=keep_places,
    )


def snapshot_of(loaded: Loaded, options: argparse.Namespace, engines: Engines) -> Snapshot:
    """The snapshot of objects that were read."""
    lacking = set(getattr(options, "without_api", ()))
    return Snapshot.of(
        loaded.objects,
        now=datetime.now(UTC),
        config=loaded.config,
        served=frozenset(api for api in EVERY_API if api.api_version not in lacking),
        plugins=[PluginVersion(engine.name, engine.version) for engine in engines],
        ome_namespace=options.ome_namespace,
        revisions=loaded.revisions,
        presets=InstalledPresets(engines),
        keeps_choices=getattr(options, "from_status", False),
    )
