"""What OME says of a runtime: what is wrong with it, its inheritance chain and whether that resolves.

Source: OME "Runtime inheritance" document (v1.3), "When a chain breaks".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ome.api import ObjectRef, Problem
from ome.planning.plan import Event
from ome.snapshot import INHERIT_FROM, Runtime, Snapshot

__all__ = ["PROFILE_ANNOTATION", "RuntimeReport", "check_runtime", "report_runtime"]

# Of the condition InheritanceReady; anything else that keeps a spec from being merged is a ResolverError.
_CHAIN_REASONS: Final = frozenset({"ParentNotFound", "InheritanceCycle", "MaxDepthExceeded"})
PROFILE_ANNOTATION: Final = "ome.io/runtime-profile"
_PROFILE_TEXT: Final = (
    f'runtimes carrying {PROFILE_ANNOTATION}="true" must also set spec.disabled: true'
)


@dataclass(frozen=True, slots=True)
class RuntimeReport:
    """The status that a runtime should have, and an event when its chain is broken.

    `status` holds `inheritanceChain` and `conditions`; a condition has no `lastTransitionTime`: whoever
    writes it knows whether it changed.
    """

    runtime: ObjectRef
    status: Mapping[str, Any]
    event: Event | None = None


def report_runtime(snapshot: Snapshot, runtime: Runtime) -> RuntimeReport:
    """How inheritance went for one runtime of the snapshot.

    A chain that doesn't resolve leaves the last one that did in status.
    """
    effective = snapshot.lineage.effective(runtime.ref)
    broken = effective.broken
    reason = "Resolved"
    if broken is not None:
        reason = broken.reason if broken.reason in _CHAIN_REASONS else "ResolverError"
    condition: dict[str, Any] = {
        "type": "InheritanceReady",
        "status": "True" if broken is None else "False",
        "reason": reason,
        "message": "" if broken is None else broken.message,
    }
    if runtime.generation:
        condition["observedGeneration"] = runtime.generation
    names = [each.name for each in effective.chain]
    if broken is not None:
        last = (runtime.raw.get("status") or {}).get("inheritanceChain")
        names = [name for name in last if isinstance(name, str)] if isinstance(last, list) else []
    status: dict[str, Any] = {"conditions": [condition]}
    if names:
        status["inheritanceChain"] = names
    event = None if broken is None else Event("Warning", reason, broken.message)
    return RuntimeReport(runtime.ref, status, event)


def check_runtime(snapshot: Snapshot, runtime: Runtime) -> Iterator[Problem]:
    """Why admission refuses a runtime, the first problem being the one that it tells: a profile that isn't
    disabled, a chain that doesn't resolve."""
    own = runtime.raw.get("spec") or {}
    if runtime.annotations.get(PROFILE_ANNOTATION) == "true" and own.get("disabled") is not True:
        fix = "set spec.disabled: true, or remove the annotation"
        yield Problem("ProfileNotDisabled", _PROFILE_TEXT, runtime.ref, "spec.disabled", fix)
    broken = snapshot.lineage.effective(runtime.ref).broken
    if broken is not None and broken.reason in _CHAIN_REASONS:  # a preset's fault is its own
        path = f"metadata.annotations[{INHERIT_FROM}]"
        fix = "name a parent that exists, once in the chain"
        if broken.reason == "MaxDepthExceeded":
            fix = "shorten the chain"
        yield Problem(broken.reason, broken.message, runtime.ref, path, fix)
