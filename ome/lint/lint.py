"""Lint: what the API accepts and what hurts later, over a whole snapshot."""

from __future__ import annotations

from collections.abc import Iterator

from ome.api import (
    AcceleratorClass,
    ApiObject,
    BaseModel,
    ClusterBaseModel,
    ClusterServingRuntime,
    Problem,
    ServingRuntime,
)
from ome.engines.engines import Engines
from ome.engines.types import Severity
from ome.lint.chains import chain_findings
from ome.lint.findings import LintFinding, from_problem
from ome.lint.fleet import overlaps, unknown_classes, unmatched
from ome.lint.objects import MODEL_RULES, RUNTIME_RULES
from ome.planning.planner import plan
from ome.snapshot import Snapshot

__all__ = ["lint"]

# Advisories of a plan that say what OME does, not what is wrong.
_NOT_FINDINGS = frozenset({"AutoSelected"})


def lint(snapshot: Snapshot, engines: Engines) -> Iterator[LintFinding]:
    """Every finding once, by object: runtimes, models, then services as they would be planned."""
    return iter(dict.fromkeys(_findings(snapshot, engines)))


def _findings(snapshot: Snapshot, engines: Engines) -> Iterator[LintFinding]:
    runtimes = snapshot.of_kinds(ServingRuntime, ClusterServingRuntime)
    models = snapshot.of_kinds(BaseModel, ClusterBaseModel)
    for items, rules in ((runtimes, RUNTIME_RULES), (models, MODEL_RULES)):
        for item in items:
            for rule in rules:
                yield from rule(item)
    for problem in snapshot.preset_problems:
        yield from_problem(problem, Severity.ERROR)
    classes: list[ApiObject] = snapshot.of_kinds(AcceleratorClass)
    yield from unknown_classes(runtimes, classes)
    yield from overlaps(runtimes)
    yield from unmatched(runtimes, models)
    for item in runtimes:
        assert isinstance(item, ServingRuntime | ClusterServingRuntime)
        yield from chain_findings(snapshot, item)
        yield from _directives(snapshot, item)
    for service in snapshot.services():
        planned = plan(snapshot, service, engines)
        for _, problem in planned.refusals():
            yield from_problem(problem, Severity.ERROR)
        for problem in planned.warnings:
            if problem.code not in _NOT_FINDINGS:
                yield from_problem(problem, _severity(problem))


def _severity(problem: Problem) -> Severity:
    if problem.is_note:
        return Severity.NOTE
    return Severity.ERROR if problem.is_error else Severity.WARNING


def _directives(snapshot: Snapshot, item: ApiObject) -> Iterator[LintFinding]:
    """Directives of a runtime and its parents that find nothing to remove."""
    effective = snapshot.lineage.effective(item.ref)
    if effective.broken is None:  # else the services that name it are refused
        for problem in effective.unmatched:
            yield from_problem(problem, Severity.WARNING)
