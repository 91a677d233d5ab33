"""`kubectl ome runtime effective`: what a service is served from, live and pinned."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from typing import Final

from ome.api import ObjectRef, ServingRuntime
from ome.cli.columns import clip, clip_identity
from ome.cli.target import (
    check_name,
    find_service,
    guarded,
    namespace_of,
    read_input,
    write_data,
    write_table,
)
from ome.reports.effective import EffectiveReport, View, effective
from ome.reports.evidence import Issue

__all__ = ["HEADER", "context_rows", "rows", "run", "shown_runtime"]

HEADER: Final = ("SCOPE", "FIELD", "VALUE")
WIDE: Final = (
    *("VIEW", "STATE", "REASON", "RUNTIME", "REVISION", "HASH", "COMPONENT", "MODE", "MODE-SOURCE"),
    *("PIN", "PIN-STATE", "SYNC", "STATUS", "DRIFT", "LIVE-RELATION", "ISSUES"),
)
# How wide a value may be, and the parts of one that has several.
_VALUE: Final = 54
_NAMESPACE: Final = 20
_CODE: Final = 28

_Row = tuple[str, str, str]


def run(options: argparse.Namespace) -> int:
    """Print the report; exit code 0, or 1 with an error on stderr."""
    return guarded(_run, options)


def _run(options: argparse.Namespace) -> None:
    check_name("InferenceService", options.name)
    snapshot = read_input(options)
    service = find_service(snapshot, namespace_of(options), options.name, "get InferenceService: ")
    report = effective(snapshot, service)
    if options.output == "table":
        write_table(HEADER, list(rows(report)))
    elif options.output == "wide":
        write_table(WIDE, list(_wide_rows(report)))
    else:
        write_data(report.as_json(), options.output)


def rows(report: EffectiveReport) -> Iterator[_Row]:
    """The table: Live, Active, Service; each field only where it has a value."""
    for scope, view in (("Live", report.live), ("Active", report.active)):
        for field, value in _view_fields(view):
            if value:
                yield scope, field, value
    pin = report.pin
    fields = {
        "PIN": f"{pin.mode}/{pin.state}",
        "SYNC": pin.sync,
        "STATUS": pin.freshness,
        "DRIFT": _drift(report),
        "LIVE-RELATION": report.relation,
    }
    for field, value in fields.items():
        yield "Service", field, clip(value, _VALUE)
    for issue in report.issues():
        yield "Service", "ISSUE", _shown_issue(issue)


def context_rows(report: EffectiveReport) -> Iterator[_Row]:
    """What `explain --with-effective` says before the rows of the report."""
    live = report.resolved
    yield "Service", "SELECTION", live.selection
    yield "Service", "SOURCE", "-" if live.ref is None else shown_runtime(live.ref)
    yield "Source", "INHERITANCE", "Unavailable" if live.chain_reason else "Observed"
    if live.chain_reason:
        yield "Source", "REASON", live.chain_reason
    for runtime in live.chain:
        yield "Source", "ROOT-FIRST", shown_runtime(runtime.ref)
    yield "Service", "CAVEAT", "Independent snapshot; not rollout convergence"


def _view_fields(view: View) -> Iterator[tuple[str, str]]:
    yield "STATE", view.state
    yield "REASON", view.reason
    yield "RUNTIME", "" if view.source is None else shown_runtime(view.source)
    yield "REVISION", clip_identity(view.revision, _VALUE)
    yield "HASH", view.hash
    for each in view.components:
        yield each.name.upper(), clip(f"{each.mode} ({each.source})", _VALUE)


def shown_runtime(ref: ObjectRef) -> str:
    """A runtime within 54 columns: its kind in short, its names at most shortened."""
    kind = "SR" if ref.kind == ServingRuntime.KIND else "CSR"
    if not ref.namespace:
        return f"{kind}/{clip_identity(ref.name, _VALUE - len(kind) - 1)}"
    name = clip_identity(ref.name, _VALUE - len(kind) - 2 - _NAMESPACE)
    return f"{kind}/{clip_identity(ref.namespace, _NAMESPACE)}/{name}"


def _shown_issue(issue: Issue) -> str:
    if not issue.revision or len(str(issue)) <= _VALUE:
        return clip_identity(str(issue), _VALUE)
    revision = clip_identity(issue.revision, _VALUE - _CODE - 2)
    return f"{clip_identity(issue.code, _CODE)}({revision})"


def _drift(report: EffectiveReport) -> str:
    return "/".join(part for part in report.pin.drift if part)


def _wide_rows(report: EffectiveReport) -> Iterator[Sequence[str]]:
    pin = report.pin
    issues = ",".join(map(str, report.issues()))
    for name, view in (("Live", report.live), ("Active", report.active)):
        components = [(each.name, each.mode, each.source) for each in view.components]
        for component in components or [("", "", "")]:
            cells = (
                *(name, view.state, view.reason, str(view.source or ""), view.revision),
                *(view.hash, *component, pin.mode, pin.state, pin.sync, pin.freshness),
                *(_drift(report), report.relation, issues),
            )
            yield [cell or "-" for cell in cells]
