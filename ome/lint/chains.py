"""What hurts between a runtime and its parents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ome.engines.types import Severity
from ome.lint.findings import LintFinding, from_problem
from ome.merging.container import place_runner, pod_fields_of
from ome.planning.podchecks import check_env_sources, check_probe_handlers, check_volume_sources
from ome.planning.runtimes import PROFILE_ANNOTATION, check_runtime
from ome.snapshot import Effective, Runtime, Snapshot

__all__ = ["chain_findings"]

Json = Mapping[str, Any]

_CONFIGS = ("engineConfig", "decoderConfig", "routerConfig")
_SWITCHES = (check_volume_sources, check_env_sources, check_probe_handlers)


def chain_findings(snapshot: Snapshot, runtime: Runtime) -> Iterator[LintFinding]:
    """What admission refuses, an inherited `disabled`, and kinds that a child adds to a parent's."""
    for problem in check_runtime(snapshot, runtime):
        yield from_problem(problem, Severity.ERROR)
    effective = snapshot.lineage.effective(runtime.ref)
    if effective.broken is None and len(effective.chain) > 1:
        yield from _inherits_disabled(snapshot, runtime, effective)
        yield from _switches(runtime, effective)


def _inherits_disabled(
    snapshot: Snapshot, runtime: Runtime, effective: Effective
) -> Iterator[LintFinding]:
    """A runtime at the end of a chain that nobody can use, because its parent is a profile."""
    own = (runtime.raw.get("spec") or {}).get("disabled")
    is_profile = runtime.annotations.get(PROFILE_ANNOTATION) == "true"
    has_children = len(snapshot.lineage.reaches(runtime.ref)) > 1
    if own is not None or is_profile or has_children or effective.spec.get("disabled") is not True:
        return
    source = next(
        each for each in effective.chain[::-1] if (each.raw.get("spec") or {}).get("disabled")
    )
    message = f"it inherits disabled: true from {source.name}, so services that name it are refused"
    fix = "set disabled: false"
    yield LintFinding(
        "DisabledInherited", Severity.WARNING, runtime.ref, "spec.disabled", message, fix
    )


def _switches(runtime: Runtime, effective: Effective) -> Iterator[LintFinding]:
    """Volumes, variables and probes that have two kinds after the merge."""
    for config in _CONFIGS:
        component = effective.spec.get(config)
        levels = [component, *(_level(component, part) for part in ("leader", "worker"))]
        for level, part in zip(levels, ("", ".leader", ".worker"), strict=True):
            if not isinstance(level, Mapping):
                continue
            for check in _SWITCHES:
                for problem in check(_pod(level)):
                    path = f"spec.{config}{part}.{problem.path}"
                    yield LintFinding(
                        problem.code,
                        Severity.ERROR,
                        runtime.ref,
                        path,
                        problem.message,
                        problem.fix,
                    )


def _level(component: object, part: str) -> object:
    return component.get(part) if isinstance(component, Mapping) else None


def _pod(level: Json) -> Json:
    """What a level gives of a pod."""
    pod = pod_fields_of(level)
    runner = level.get("runner")
    named = isinstance(runner, Mapping) and runner.get("name")
    return {"containers": [], **(place_runner(pod, runner) if named else pod)}  # type: ignore[arg-type]
