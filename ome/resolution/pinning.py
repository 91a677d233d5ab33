"""Pinning: a service with `autoSync: false` is served from a stored revision of its runtime.

The rows of the documented table, in order; the first that fits decides. Source: OME "Runtime revisions
and pinning" document (v1.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ome.api import (
    API_VERSION,
    ClusterServingRuntime,
    InferenceService,
    InvalidObject,
    ObjectRef,
    ServingRuntime,
    parse,
)
from ome.resolution.revisions import revision_name, revision_object
from ome.snapshot import Effective, Revision, Runtime, Snapshot

__all__ = [
    "SYNC_ANNOTATION",
    "Drift",
    "Pin",
    "Unpinnable",
    "find_revision",
    "pin",
    "runtime_kind",
    "runtime_of_revision",
]

Json = Mapping[str, Any]

SYNC_ANNOTATION: Final = "ome.io/runtime-sync"
# Drift that leaves the workload as it is until somebody decides.
_FREEZING: Final = frozenset({"RevisionMismatch", "RevisionMissing", "RuntimeMismatch"})
_LONGEST_LABEL: Final = 63


@dataclass(frozen=True, slots=True)
class Drift:
    """The `RuntimeDrifted` condition, which is only ever True or absent."""

    reason: str
    message: str

    @property
    def freezes(self) -> bool:
        """Whether the workload isn't updated while it lasts."""
        return self.reason in _FREEZING


@dataclass(frozen=True, slots=True)
class Pin:
    """What a pinned service is served from: the revision's spec (None while drift freezes the workload),
    what goes into its status, and revisions to be written first."""

    spec: Json | None
    revision: str
    drift: Drift | None = None
    status: Json = field(default_factory=dict)
    effects: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True, slots=True)
class Unpinnable(Exception):
    """Nothing to serve from: no live runtime and no revision, or none that can be written or read.
    Event `RuntimePinError`; retried."""

    message: str

    def __str__(self) -> str:
        return self.message


def pin(
    snapshot: Snapshot,
    service: InferenceService,
    reference: Json,
    live: Effective | None,
    problem: str = "",
    *,
    is_missing: bool = False,
) -> Pin:
    """Decide what a service with `autoSync: false` is served from.

    `live` is the runtime with what it inherits, None when it can't be resolved for the reason in
    `problem`; with `is_missing` because it doesn't exist. Raises Unpinnable.
    """
    status = service.raw.get("status")
    status = status if isinstance(status, dict) else {}
    name, asked = reference["name"], reference.get("revision") or ""
    pinned = status.get("pinnedRevisionName") or ""
    token = service.annotations.get(SYNC_ANNOTATION) or ""
    if live is None:
        wanted = (asked or pinned) if is_missing else ""
        return _without_live(snapshot, name, wanted, problem, status)
    if asked:
        return _explicit(snapshot, name, asked, status)
    kind = runtime_kind(reference)
    if not pinned:
        return _advance(snapshot, service, kind, live, token, "create initial pin")
    held = snapshot.revision(pinned)
    if held is None:
        text = f"pinned revision {pinned} missing from {snapshot.ome_namespace}"
        return Pin(None, pinned, Drift("RevisionMissing", text), _kept(status))
    if held.digest == live.digest:
        return Pin(_readable(held).spec, pinned, None, _kept(status))
    if token and token != status.get("lastRuntimeSyncToken"):
        return _advance(snapshot, service, kind, live, token, "advance pin")
    text = f"pinned {pinned}, live spec differs; bump {SYNC_ANNOTATION} annotation to advance"
    return Pin(None, pinned, Drift("RevisionMismatch", text), _kept(status))


def runtime_kind(reference: Json) -> str:
    """The kind that a service's `runtime` names: a ClusterServingRuntime when it names none."""
    return reference.get("kind") or ClusterServingRuntime.KIND


def runtime_of_revision(snapshot: Snapshot, namespace: str, found: Pin) -> Runtime:
    """The runtime as a revision remembers it, for a service whose live runtime is gone."""
    held = snapshot.revision(found.revision)
    assert held is not None
    return _remembered(held, namespace)


def _remembered(held: Revision, namespace: str) -> Runtime:
    """A revision as the runtime that it was taken of. Raises InvalidObject."""
    local = held.kind == ServingRuntime.KIND
    where = {"namespace": held.namespace or namespace} if local else {}
    kind = ServingRuntime if local else ClusterServingRuntime
    item = parse(
        {
            "apiVersion": API_VERSION,
            "kind": kind.KIND,
            "metadata": {"name": held.runtime, **where},
            "spec": dict(held.spec),
        }
    )
    assert isinstance(item, ServingRuntime | ClusterServingRuntime)
    return item


def _readable(held: Revision) -> Revision:
    """The revision, when its spec is a runtime's. Raises Unpinnable: anybody can write a revision."""
    if not held.is_object:
        raise Unpinnable(f"decode revision {held.name}: data: it is no object")
    try:
        _remembered(held, "default")
    except InvalidObject as error:
        problem = error.problems[0]
        path = problem.path.replace("spec", "data", 1)
        raise Unpinnable(f"decode revision {held.name}: {path}: {problem.message}") from None
    return held


def _kept(status: Json) -> Json:
    names = ("pinnedRevisionName", "lastRuntimeSyncToken")
    return {name: status[name] for name in names if status.get(name)}


def _without_live(snapshot: Snapshot, name: str, wanted: str, problem: str, status: Json) -> Pin:
    held = snapshot.revision(wanted) if wanted else None
    if held is None or held.runtime != name:
        raise Unpinnable(f"resolve live runtime {name}: {problem}")
    text = f"runtime {name} does not exist any more: serving from {wanted}"
    drift = Drift("SourceRuntimeMissing", text)
    spec = _readable(held).spec
    return Pin(spec, wanted, drift, {**_kept(status), "pinnedRevisionName": wanted})


def _explicit(snapshot: Snapshot, name: str, asked: str, status: Json) -> Pin:
    held = snapshot.revision(asked)
    if held is None:
        text = f"explicit pin {asked} not found in namespace {snapshot.ome_namespace}"
        return Pin(None, asked, Drift("RevisionMissing", text), _kept(status))
    if held.runtime != name:
        text = f'revision {asked} belongs to runtime "{held.runtime}" but ISVC references "{name}"'
        return Pin(None, asked, Drift("RuntimeMismatch", text), _kept(status))
    spec = _readable(held).spec
    return Pin(spec, asked, None, {**_kept(status), "pinnedRevisionName": asked})


def _advance(
    snapshot: Snapshot,
    service: InferenceService,
    kind: str,
    live: Effective,
    token: str,
    step: str,
) -> Pin:
    """Pin to the live spec: to a revision of the same content, or to a new one. Raises Unpinnable when
    the new one can't be written."""
    runtime = live.chain[-1]
    name = revision_name(kind, service.namespace, runtime.name, live.digest)
    found = find_revision(snapshot, runtime.ref, live.digest) or snapshot.revisions.get(name)
    if found is None and len(runtime.name) > _LONGEST_LABEL:
        text = f"its name has {len(runtime.name)} characters; the label ome.io/runtime-of holds 63"
        raise Unpinnable(f"{step} for {runtime.name}: {text}")
    # ServingRuntimes of several namespaces that are named without their kind share revisions' names.
    if found is not None and (found.runtime, found.digest) != (runtime.name, live.digest):
        text = f"revision {name} exists and holds something else"
        raise Unpinnable(f"{step} for {runtime.name}: {text}")
    name = found.name if found else name
    status: dict[str, Any] = {"pinnedRevisionName": name}
    if token:
        status["lastRuntimeSyncToken"] = token
    effects = () if found else (revision_object(name, live, snapshot.ome_namespace),)
    return Pin(found.spec if found else live.spec, name, None, status, effects)


def find_revision(snapshot: Snapshot, runtime: ObjectRef, digest: str) -> Revision | None:
    """A stored revision of this very runtime (kind and namespace too) with content of this hash."""
    same = [each for each in snapshot.revisions_of(runtime) if each.digest == digest]
    return min(same, key=lambda each: each.name, default=None)
