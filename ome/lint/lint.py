"""Lint: what the API accepts and what hurts later, over a whole snapshot."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from ome.api import (
    AcceleratorClass,
    ApiObject,
    BaseModel,
    ClusterBaseModel,
    ClusterServingRuntime,
    InferenceService,
    Problem,
    ServingRuntime,
)
from ome.engines.engines import Engines
from ome.engines.types import Severity
from ome.lint.chains import chain_findings
from ome.lint.classes import CLASS_RULES
from ome.lint.findings import LintFinding, from_problem
from ome.lint.fleet import overlaps, unknown_classes, unmatched
from ome.lint.objects import MODEL_RULES, RUNTIME_RULES
from ome.planning.planner import plan
from ome.planning.setters import name_setters
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
    classes: list[ApiObject] = snapshot.of_kinds(AcceleratorClass)
    for items, rules in (
        (runtimes, RUNTIME_RULES),
        (models, MODEL_RULES),
        (classes, CLASS_RULES),
    ):
        for item in items:
            for rule in rules:
                yield from rule(item)
    for problem in snapshot.preset_problems:
        yield from_problem(problem, Severity.ERROR)
    yield from unknown_classes(runtimes, classes)
    yield from overlaps(runtimes)
    yield from unmatched(runtimes, models)
    for item in runtimes:
        assert isinstance(item, ServingRuntime | ClusterServingRuntime)
        yield from chain_findings(snapshot, item)
        yield from _directives(snapshot, item)
    for service in snapshot.services():
        yield from _planned(snapshot, service, engines)


def _planned(
    snapshot: Snapshot, service: InferenceService, engines: Engines
) -> Iterator[LintFinding]:
    """What the plan of a service refuses and warns about."""
    planned = plan(snapshot, service, engines)
    for _, problem in planned.refusals():
        if problem.code == "RevisionMissing":
            yield _missing_revision(snapshot, service, problem)
        else:
            yield from_problem(problem, Severity.ERROR)
    again = partial(plan, snapshot, service, engines, provenance=True)
    for problem in name_setters(planned, again):
        if problem.code not in _NOT_FINDINGS:
            yield from_problem(problem, _severity(problem))


def _missing_revision(
    snapshot: Snapshot, service: InferenceService, problem: Problem
) -> LintFinding:
    """Files seldom hold the revisions that a cluster has: a note that the pods weren't looked at."""
    reference = (service.raw.get("spec") or {}).get("runtime") or {}
    names = [each.name for each in snapshot.revisions.values() if each.runtime == reference["name"]]
    asked = reference.get("revision") or (service.raw.get("status") or {})["pinnedRevisionName"]
    near = difflib.get_close_matches(asked, names, n=1)
    fix = "add it to the input to have the service's pods looked at"
    if near:
        fix = f"did you mean {near[0]}?"
    return from_problem(replace(problem, fix=fix), Severity.NOTE)


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
