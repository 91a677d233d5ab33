"""`ome engines`: the installed engine plugins."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from ome.cli.columns import table
from ome.cli.output import to_json
from ome.engines.discovery import discover
from ome.engines.engines import Engine, Engines
from ome.engines.types import CONTRACT

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """List them; exit code 1 when a plugin couldn't be loaded."""
    engines = discover()
    text = _as_json(engines) if options.output == "json" else _as_table(engines)
    sys.stdout.write(text)
    return 1 if engines.errors else 0


def _describe(engine: Engine) -> dict[str, Any]:
    profiles = engine.profiles
    return {
        "name": engine.name,
        "status": "Ready",
        "distribution": engine.distribution,
        "version": engine.version,
        "contract": engine.info.contract,
        "summary": engine.info.summary,
        "presets": list(engine.info.presets),
        "probeProfiles": [profile.name for profile in profiles if profile.probes],
        "observabilityProfiles": [profile.name for profile in profiles if profile.annotations],
    }


def _as_json(engines: Engines) -> str:
    failed = [
        {
            "name": error.name,
            "status": "Failed",
            "distribution": error.distribution,
            "message": error.message,
        }
        for error in engines.errors
    ]
    ready = [_describe(engine) for engine in engines]
    return to_json({"contract": CONTRACT, "engines": [*ready, *failed]})


def _as_table(engines: Engines) -> str:
    header = (
        "ENGINE",
        "STATUS",
        "DISTRIBUTION",
        "VERSION",
        "CONTRACT",
        "PRESETS",
        "PROBES",
        "OBSERVABILITY",
    )
    rows = []
    for engine in engines:
        data = _describe(engine)
        lists = [",".join(data[key]) or "-" for key in _LISTS]
        rows.append(
            (
                engine.name,
                "Ready",
                engine.distribution or "-",
                engine.version or "-",
                str(engine.info.contract),
                *lists,
            )
        )
    for failed in engines.errors:
        rows.append((failed.name, "Failed", failed.distribution or "-", *("-",) * 5))
    if not rows:
        return "No engine plugin is installed; containers are rendered by the documented rules alone.\n"
    text = table(header, rows)
    for failed in engines.errors:
        text += f"\n{failed.name} ({failed.distribution}): {failed.message}\n"
    return text


_LISTS = ("presets", "probeProfiles", "observabilityProfiles")
