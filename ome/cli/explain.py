"""`ome explain`, also `kubectl ome runtime explain`: which runtimes fit a model, and why not the others."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from ome.api import ObjectRef, OmeError, Problem
from ome.cli.columns import fit_table
from ome.cli.input import read_engines, read_snapshot
from ome.cli.output import error, table, to_json, to_yaml
from ome.resolution.resolve import Model, find_model, unservable
from ome.resolution.selection import explain, number
from ome.scoring.explain import Row, rows
from ome.scoring.verdict import ANY_SERVICE, Request
from ome.snapshot import Snapshot

__all__ = ["run"]

Json = Mapping[str, Any]

HEADER = ("RUNTIME", "SCOPE", "COMPATIBLE", "PRIORITY", "WEIGHT", "REASON")
WIDE = (*HEADER[:-1], "SCORE", "DISTANCE", "RANK", "TIE-BREAK", "ENTRY", "REASON")


class _Refused(Exception):
    """The command can't answer; its message is what stderr gets."""


def run(options: argparse.Namespace) -> int:
    """Print the report; exit code 0, or 1 with an error on stderr."""
    try:
        if bool(options.model) == bool(options.isvc):
            raise _Refused("exactly one of --model or --isvc is required")
        if not options.filename:
            raise _Refused("-f is required: this version of OME reads manifests, not a cluster")
        snapshot = read_snapshot(options, read_engines())
        namespace = options.namespace or "default"
        model, request = _subject(snapshot, namespace, options)
        _report(snapshot, namespace, model, request, options)
    except OmeError as refused:
        for problem in refused.problems:
            error(problem)
        return 1
    except _Refused as refused:
        error(refused)
        return 1
    return 0


def _subject(
    snapshot: Snapshot, namespace: str, options: argparse.Namespace
) -> tuple[Model, Request]:
    """The model that the report is about, and what the service asks of runtimes."""
    if options.model:
        return _model(snapshot, namespace, options.model, "ClusterBaseModel"), ANY_SERVICE
    service = snapshot.service(namespace, options.isvc)
    if service is None:
        raise _Refused(f'inferenceservices.ome.io "{options.isvc}" not found')
    spec = service.raw.get("spec") or {}
    reference = spec.get("model") or {}
    if not reference.get("name"):
        raise _Refused(f'InferenceService "{options.isvc}" has no spec.model; pass --model instead')
    if (spec.get("runtime") or {}).get("name"):
        note = "Note: spec.runtime is explicit; automatic selection below is hypothetical."
        print(note, file=sys.stderr)
    kind = reference.get("kind") or "ClusterBaseModel"
    return _model(snapshot, namespace, reference["name"], kind), Request.of(service.raw)


def _model(snapshot: Snapshot, namespace: str, name: str, kind: str) -> Model:
    found = find_model(snapshot, namespace, name, kind)
    if found is None:
        raise _Refused(f'clusterbasemodels.ome.io "{name}" not found')
    return found


def _report(
    snapshot: Snapshot,
    namespace: str,
    model: Model,
    request: Request,
    options: argparse.Namespace,
) -> None:
    spec = model.raw.get("spec") or {}
    if fault := unservable(spec):
        raise OmeError(Problem("ModelNotServable", fault))

    def spec_of(ref: ObjectRef) -> Json:
        runtime = snapshot.runtime_of(ref)
        return {} if runtime is None else runtime.raw.get("spec") or {}

    found = rows(explain(snapshot, namespace, spec, request), spec, spec_of)
    if options.output in ("json", "yaml"):
        data = _as_data(found, model, namespace, options.isvc)
        sys.stdout.write(to_json(data) if options.output == "json" else to_yaml([data]))
    elif not found:
        text = "No serving runtimes found in the selected namespace or at cluster scope."
        print(text, file=sys.stderr)
    elif options.output == "wide":
        sys.stdout.write(table(WIDE, [_wide_cells(row) for row in found]))
    else:
        sys.stdout.write(fit_table(HEADER, [_cells(row) for row in found]))


def _scope(row: Row) -> str:
    return "Namespaced" if row.verdict.runtime.namespace else "Cluster"


def _cells(row: Row) -> Sequence[str]:
    return (
        row.verdict.runtime.name,
        _scope(row),
        "Yes" if row.compatible else "No",
        "-" if row.priority is None else str(row.priority),
        "-" if row.weight is None else str(row.weight),
        row.reason or "-",
    )


def _wide_cells(row: Row) -> Sequence[str]:
    *first, reason = _cells(row)
    verdict = row.verdict
    fits = verdict.reason is None
    return (
        *first,
        str(verdict.score) if fits else "-",
        str(number(verdict.distance)) if fits else "-",
        "-" if row.rank is None else str(row.rank),
        "-" if row.tie_break is None else str(row.tie_break),
        _entry(row) or "-",
        reason,
    )


def _entry(row: Row) -> str | None:
    at = row.verdict.entry
    return None if at is None else f"spec.supportedModelFormats[{at}]"


def _as_data(
    found: Sequence[Row], model: Model, namespace: str, service: str | None
) -> dict[str, Any]:
    """The report as data; absent values are left out."""
    data: dict[str, Any] = {
        "apiVersion": "cli.ome.io/v1alpha1",
        "kind": "RuntimeExplainReport",
        "namespace": namespace,
        "model": {"kind": model.KIND, "name": model.name},
        "rows": [_row_data(row) for row in found],
    }
    if service:
        data["inferenceService"] = service
    return data


def _row_data(row: Row) -> dict[str, Any]:
    verdict = row.verdict
    fits = verdict.reason is None
    values: dict[str, Any] = {
        "runtime": verdict.runtime.name,
        "kind": verdict.runtime.kind,
        "namespace": verdict.runtime.namespace or None,
        "scope": _scope(row),
        "compatible": row.compatible,
        "priority": row.priority,
        "weight": row.weight,
        "reason": row.reason or None,
        "score": verdict.score if fits else None,
        "distance": number(verdict.distance) if fits else None,
        "rank": row.rank,
        "tieBreak": None if row.tie_break is None else str(row.tie_break),
        "matchingEntry": _entry(row),
    }
    return {name: value for name, value in values.items() if value is not None}
