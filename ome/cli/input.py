"""What the commands read: the installed engines and the manifests that the input flags name."""

from __future__ import annotations

import argparse
import sys
from datetime import UTC, datetime

from ome.api import OmeError, Problem
from ome.cli.output import error, warn
from ome.engines.discovery import discover
from ome.engines.engines import Engines
from ome.snapshot import EVERY_API, PluginVersion, Snapshot
from ome.sources import InstalledPresets, Loaded, load, read_paths

__all__ = ["read_engines", "read_objects", "read_snapshot", "snapshot_of"]


def read_engines(options: argparse.Namespace) -> Engines:
    """The installed engine plugins, or those that `--engines` names; stderr gets what couldn't be loaded.

    Ends the command with 2, as other flags that can't be used, for a name that there isn't.
    """
    try:
        engines = discover(only=getattr(options, "engines", None))
    except OmeError as refused:
        for problem in refused.problems:
            error(problem)
        sys.exit(2)
    for failed in engines.errors:
        text = f"engine plugin {failed.name} of {failed.distribution} isn't used: {failed.message}"
        warn(Problem("EnginePluginFailed", text))
    for problem in engines.problems:
        warn(problem)
    return engines


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
