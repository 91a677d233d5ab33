"""`ome explain`, also `kubectl ome runtime explain`: which runtimes fit a model, and why not the others."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ome.api import InferenceService, ObjectRef, OmeError, Problem
from ome.cli.columns import fit_table
from ome.cli.effective import HEADER as EFFECTIVE_HEADER
from ome.cli.effective import context_rows
from ome.cli.effective import rows as effective_rows
from ome.cli.target import (
    Refusal,
    find_service,
    guarded,
    namespace_of,
    read_input,
    terminal_width,
    write_data,
    write_table,
)
from ome.merging.directives import own_spec
from ome.reports.effective import EffectiveReport, effective
from ome.resolution.resolve import Model, find_model, unservable
from ome.resolution.selection import explain, number
from ome.scoring.explain import Row, rows
from ome.scoring.verdict import ANY_SERVICE, Request
from ome.snapshot import Snapshot

__all__ = ["run"]

Json = Mapping[str, Any]

HEADER = ("RUNTIME", "SCOPE", "COMPATIBLE", "PRIORITY", "WEIGHT", "REASON")
WIDE = (*HEADER[:-1], "SCORE", "DISTANCE", "RANK", "TIE-BREAK", "ENTRY", "REASON")
CONTEXT = "Effective context (separate observation; selector verdict unchanged):"


@dataclass(frozen=True, slots=True)
class _Question:
    """What is asked: runtimes for a model, as a service wants them, if one is named."""

    model: Model
    request: Request
    service: InferenceService | None = None


def run(options: argparse.Namespace) -> int:
    """Print the report; exit code 0, or 1 with an error on stderr."""
    return guarded(_run, options)


def _run(options: argparse.Namespace) -> None:
    if bool(options.model) == bool(options.isvc):
        raise Refusal("exactly one of --model or --isvc is required")
    if options.with_effective and not options.isvc:
        raise Refusal("--with-effective requires --isvc")
    snapshot = read_input(options)
    namespace = namespace_of(options)
    if options.model:
        model = _model(snapshot, namespace, options.model, "ClusterBaseModel")
        asked = _Question(model, ANY_SERVICE)
    else:
        asked = _of_service(snapshot, find_service(snapshot, namespace, options.isvc))
    context = None
    if options.with_effective and asked.service is not None:
        context = effective(snapshot, asked.service)
    found = _rows(snapshot, namespace, asked)
    if options.output in ("json", "yaml"):
        data = _as_data(found, asked, namespace)
        if context is not None:
            data["effectiveContext"] = context.content()
        write_data(data, options.output)
    else:
        _write(found, context, options.output)


def _write(found: Sequence[Row], context: EffectiveReport | None, output: str) -> None:
    if not found:
        text = "No serving runtimes found in the selected namespace or at cluster scope."
        if context is not None:
            text = "No serving runtimes found for selector."
        print(text, file=sys.stderr)
    elif output == "wide":
        write_table(WIDE, [_wide_cells(row) for row in found])
    else:
        width = min(80, terminal_width() or 80)
        sys.stdout.write(fit_table(HEADER, [_cells(row) for row in found], width))
    if context is not None:
        sys.stdout.write(f"\n{CONTEXT}\n")
        write_table(EFFECTIVE_HEADER, [*context_rows(context), *effective_rows(context)])


def _of_service(snapshot: Snapshot, service: InferenceService) -> _Question:
    spec = service.raw.get("spec") or {}
    reference = spec.get("model") or {}
    if not reference.get("name"):
        text = f'InferenceService "{service.name}" has no spec.model; pass --model instead'
        raise Refusal(text)
    if (spec.get("runtime") or {}).get("name"):
        note = "Note: spec.runtime is explicit; automatic selection below is hypothetical."
        print(note, file=sys.stderr)
    kind = reference.get("kind") or "ClusterBaseModel"
    model = _model(snapshot, service.namespace, reference["name"], kind)
    return _Question(model, Request.of(service.raw), service)


def _model(snapshot: Snapshot, namespace: str, name: str, kind: str) -> Model:
    found = find_model(snapshot, namespace, name, kind)
    if found is None:
        raise Refusal(f'clusterbasemodels.ome.io "{name}" not found')
    return found


def _rows(snapshot: Snapshot, namespace: str, asked: _Question) -> list[Row]:
    spec = asked.model.raw.get("spec") or {}
    if fault := unservable(spec):
        raise OmeError(Problem("ModelNotServable", fault))

    def spec_of(ref: ObjectRef) -> Json:
        runtime = snapshot.runtime_of(ref)
        return {} if runtime is None else own_spec(runtime)

    return rows(explain(snapshot, namespace, spec, asked.request), spec, spec_of)


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


def _as_data(found: Sequence[Row], asked: _Question, namespace: str) -> dict[str, Any]:
    """The report as data; absent values are left out."""
    data: dict[str, Any] = {
        "apiVersion": "cli.ome.io/v1alpha1",
        "kind": "RuntimeExplainReport",
        "namespace": namespace,
        "model": {"kind": asked.model.KIND, "name": asked.model.name},
        "rows": [_row_data(row) for row in found],
    }
    if asked.service is not None:
        data["inferenceService"] = asked.service.name
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
