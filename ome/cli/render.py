"""`ome render`: what InferenceServices become, printed."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from ome.api import InferenceService, OmeError, Problem
from ome.cli.columns import table
from ome.cli.input import read_engines, read_snapshot
from ome.cli.output import error, to_json, to_yaml, warn
from ome.planning.plan import Plan, provenance_json
from ome.planning.planner import plan
from ome.planning.setters import name_setters
from ome.snapshot import Snapshot

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Render the services of the input; returns the exit code."""
    try:
        engines = read_engines(options)
        snapshot = read_snapshot(options, engines)
        services = _chosen(snapshot, options)
    except OmeError as refused:
        for problem in refused.problems:
            error(problem)
        return 2
    plans = [
        plan(snapshot, service, engines, provenance=options.show == "provenance")
        for service in services
    ]
    sys.stdout.write(_SHOW[options.show](plans, options.output))
    warnings = [
        problem
        for service, item in zip(services, plans, strict=True)
        for problem in name_setters(
            item, partial(plan, snapshot, service, engines, provenance=True)
        )
    ]
    for warning in dict.fromkeys(each for each in warnings if not each.is_note):
        warn(warning)
    refusals = [problem for item in plans for _, problem in item.refusals()]
    sys.stdout.flush()
    for problem in refusals:
        error(problem)
    return 1 if refusals else 0


def _chosen(snapshot: Snapshot, options: argparse.Namespace) -> list[InferenceService]:
    services = [
        service
        for service in snapshot.services()
        if options.namespace in (None, service.namespace) and options.name in (None, service.name)
    ]
    if not services:
        named = f' named "{options.name}"' if options.name else ""
        inside = f" in namespace {options.namespace}" if options.namespace else ""
        text = f"there is no InferenceService{named}{inside} in the input"
        raise OmeError(Problem("NothingToRender", text))
    return services


def _show_objects(plans: Sequence[Plan], output: str | None) -> str:
    found = [item for each in plans for item in each.objects()]
    if output == "json":
        return to_json({"apiVersion": "v1", "kind": "List", "items": found})
    return to_yaml(found)


def _show_plan(plans: Sequence[Plan], output: str | None) -> str:
    data = [each.as_json() for each in plans]
    if output == "json":
        return to_json({"plans": data})
    return to_yaml(data)


def _show_provenance(plans: Sequence[Plan], output: str | None) -> str:
    if output == "json":
        data = [
            {"service": str(each.service), "components": provenance_json(each.provenance)}
            for each in plans
        ]
        return to_json({"provenance": data})
    return "\n".join(_provenance_tables(plans))


def _provenance_tables(plans: Sequence[Plan]) -> Iterator[str]:
    for each in plans:
        for component, leaves in each.provenance.items():
            rows = [(path, _shown(value), layer) for path, (value, layer) in leaves.items()]
            yield f"{each.service} {component}\n" + table(("FIELD", "VALUE", "SET BY"), rows)


def _shown(value: Any, most: int = 60) -> str:
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    text = text.replace("\n", "\\n")
    return text if len(text) <= most else text[: most - 1] + "…"


_SHOW = {"objects": _show_objects, "plan": _show_plan, "provenance": _show_provenance}
