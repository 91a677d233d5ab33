"""`ome engines`: the installed engine plugins."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from ome.cli.columns import table
from ome.cli.output import to_json
from ome.engines.discovery import discover
from ome.engines.engines import Engine, Engines
from ome.engines.presets import check_preset
from ome.engines.types import CONTRACT, Parameter

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """List them; exit code 1 when a plugin, or a part of one, isn't used."""
    engines = discover()
    text = _as_json(engines) if options.output == "json" else _as_table(engines)
    sys.stdout.write(text)
    return 1 if engines.errors or engines.problems else 0


def _describe(engine: Engine) -> dict[str, Any]:
    profiles = engine.profiles
    return {
        "name": engine.name,
        "status": "Ready",
        "distribution": engine.distribution,
        "version": engine.version,
        "contract": engine.info.contract,
        "summary": engine.info.summary,
        "presets": [preset.name for preset in engine.presets],
        "presetParameters": {
            preset.name: [_parameter(each) for each in preset.parameters]
            for preset in engine.presets
            if not check_preset(preset)
        },
        "probeProfiles": [profile.name for profile in profiles if profile.probes],
        "observabilityProfiles": [profile.name for profile in profiles if profile.annotations],
    }


def _parameter(parameter: Parameter) -> dict[str, Any]:
    return {
        "name": parameter.name,
        "type": str(parameter.type),
        "default": parameter.default,
        "description": parameter.description,
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
    data: dict[str, Any] = {"contract": CONTRACT, "engines": [*ready, *failed]}
    if engines.problems:
        data["problems"] = [problem.as_json() for problem in engines.problems]
    return to_json(data)


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
    for problem in engines.problems:
        text += f"\n{problem}\n"
    return text


_LISTS = ("presets", "probeProfiles", "observabilityProfiles")
