"""A runtime's place in inheritance: its chain, everything that inherits from it, and who names each.

Source: OME "kubectl ome runtime" reference (v1.3), "tree". Chains and references are resolved by the
rules that serve a service.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ome.api import ClusterServingRuntime, InferenceService, ObjectRef, ServingRuntime
from ome.api.scalars import name_faults
from ome.reports.evidence import FROM_FILES, PARTIAL, Evidence, Listing, envelope
from ome.resolution.pinning import runtime_kind
from ome.resolution.resolve import find_runtime
from ome.snapshot import INHERIT_FROM, Runtime, Snapshot

__all__ = [
    "Collection",
    "NoTree",
    "Path",
    "Step",
    "TreeContext",
    "TreeIssue",
    "TreeReport",
    "Unattributed",
    "find_target",
    "tree",
]

_ISSUES: Final = {
    "ParentNotFound": "ParentMissing",
    "InheritanceCycle": "CycleDetected",
    "MaxDepthExceeded": "MaxDepthExceeded",
}


class NoTree(Exception):
    """There is nothing to show; the message is complete."""


@dataclass(frozen=True, slots=True)
class Step:
    """A runtime of a path, the name that it inherits from, and the runtime that is (if it is there)."""

    ref: ObjectRef
    parent: str = ""
    resolved: ObjectRef | None = None

    def as_json(self) -> dict[str, Any]:
        """The step as JSON data."""
        data: dict[str, Any] = {"identity": _identity(self.ref)}
        if self.parent:
            data["parentName"] = self.parent
        if self.resolved is not None:
            data["resolvedParent"] = _identity(self.resolved)
        return data


@dataclass(frozen=True, slots=True)
class TreeIssue:
    """Why the chain of `subject` doesn't resolve; `path` leads from it to where it breaks."""

    code: str
    subject: ObjectRef
    parent: str
    path: tuple[ObjectRef, ...]

    def as_json(self) -> dict[str, Any]:
        """The issue as JSON data."""
        return {
            "code": self.code,
            "subject": _identity(self.subject),
            "parentName": self.parent,
            "path": [_identity(ref) for ref in self.path],
        }


@dataclass(frozen=True, slots=True)
class Path:
    """The chain of one runtime, root first, with the services that name it."""

    head: ObjectRef
    steps: tuple[Step, ...]
    dependents: tuple[ObjectRef, ...]
    issue: TreeIssue | None = None

    def as_json(self) -> dict[str, Any]:
        """The path as JSON data."""
        data: dict[str, Any] = {
            "head": _identity(self.head),
            "runtimes": [step.as_json() for step in self.steps],
            "dependents": [_identity(ref) for ref in self.dependents],
        }
        if self.issue is not None:
            data["issue"] = self.issue.as_json()
        return data


@dataclass(frozen=True, slots=True)
class TreeContext:
    """Paths that resolve alike: those of ClusterServingRuntimes, or of one namespace's ServingRuntimes."""

    namespace: str
    paths: tuple[Path, ...]

    @property
    def mode(self) -> str:
        """Cluster or Namespaced."""
        return "Namespaced" if self.namespace else "Cluster"

    def as_json(self) -> dict[str, Any]:
        """The context as JSON data."""
        where = {"namespace": self.namespace} if self.namespace else {}
        return {
            "context": {"mode": self.mode, **where},
            "resolutionCompleteness": "Complete",
            "paths": [path.as_json() for path in self.paths],
        }


@dataclass(frozen=True, slots=True)
class Collection:
    """One list that the tree is made from."""

    kind: str
    scope: str
    namespace: str
    listing: Listing
    items: int

    def as_json(self) -> dict[str, Any]:
        """The collection as JSON data."""
        where = {"namespace": self.namespace} if self.namespace else {}
        return {
            "kind": self.kind,
            "scope": self.scope,
            **where,
            "status": self.listing.status,
            "observedPages": self.listing.pages,
            "observedItems": self.items,
        }


@dataclass(frozen=True, slots=True)
class Unattributed:
    """A service whose runtime its spec doesn't tell."""

    service: ObjectRef
    state: str
    reason: str
    declared: str = ""

    def as_json(self) -> dict[str, Any]:
        """The service as JSON data."""
        declared = {"declaredRuntime": self.declared} if self.declared else {}
        return {
            **_identity(self.service),
            "state": self.state,
            "reason": self.reason,
            **declared,
        }


@dataclass(frozen=True)
class TreeReport:
    """The tree around one runtime."""

    snapshot: Snapshot = field(repr=False)
    target: ObjectRef
    contexts: tuple[TreeContext, ...]
    collections: tuple[Collection, ...]
    unattributed: tuple[Unattributed, ...]

    @property
    def completeness(self) -> str:
        """Complete, or Partial when services may be missing."""
        complete = all(each.listing.status == "Complete" for each in self.collections)
        return "Complete" if complete else "Partial"

    def warnings(self) -> list[str]:
        """What makes the report less than complete, by code."""
        found = set().union(*(each.listing.warnings for each in self.collections))
        return sorted({PARTIAL, *found}) if found else []

    def as_json(self, *, show_unattributed: bool = False) -> dict[str, Any]:
        """The RuntimeTreeReport."""
        content: dict[str, Any] = {
            "target": _identity(self.target),
            "snapshot": {
                "completeness": self.completeness,
                "collections": [each.as_json() for each in self.collections],
            },
            "contexts": [each.as_json() for each in self.contexts],
        }
        if show_unattributed:
            content["unattributedUsers"] = [each.as_json() for each in self.unattributed]
        return envelope(
            "RuntimeTreeReport", self.snapshot, self.target, content, warnings=self.warnings()
        )


def _identity(ref: ObjectRef) -> dict[str, str]:
    where = {"namespace": ref.namespace} if ref.namespace else {}
    return {"kind": ref.kind, **where, "name": ref.name}


def find_target(snapshot: Snapshot, namespace: str, name: str, kind: str = "") -> Runtime:
    """The runtime of a name, of one kind or of either. Raises NoTree."""
    local = snapshot.runtime(namespace, name) if kind != ClusterServingRuntime.KIND else None
    cluster = snapshot.cluster_runtime(name) if kind != ServingRuntime.KIND else None
    if local is not None and cluster is not None:
        raise NoTree(
            f'runtime "{name}" is ambiguous; pass --kind ServingRuntime or --kind '
            f'ClusterServingRuntime: runtime target is ambiguous: "{name}" matched 2 runtimes'
        )
    if (found := local or cluster) is None:
        raise NoTree(f'project runtime inheritance tree: runtime target was not found: "{name}"')
    return found


def tree(snapshot: Snapshot, target: Runtime, evidence: Evidence = FROM_FILES) -> TreeReport:
    """The tree around a runtime. Raises NoTree when a list of runtimes isn't complete."""
    within = target.namespace
    cluster = snapshot.of_kinds(ClusterServingRuntime)
    local = [item for item in snapshot.of_kinds(ServingRuntime) if within in ("", item.namespace)]
    services = [item for item in snapshot.services() if within in ("", item.namespace)]
    scope = "Namespace" if within else "AllNamespaces"
    collections = (
        _collection(evidence, ClusterServingRuntime.KIND, "Cluster", "", len(cluster)),
        _collection(evidence, ServingRuntime.KIND, scope, within, len(local)),
        _collection(evidence, InferenceService.KIND, scope, within, len(services)),
    )
    _check_complete(collections[:2])
    users, unattributed = _attribute(snapshot, services)
    found: dict[str, list[Path]] = defaultdict(list)
    for ref in snapshot.lineage.reaches(target.ref):
        found[ref.namespace].append(_path(snapshot, ref, users.get(ref, ())))
    contexts = tuple(
        TreeContext(namespace, tuple(sorted(found[namespace], key=_order(target.ref))))
        for namespace in sorted(found)
    )
    return TreeReport(snapshot, target.ref, contexts, collections, tuple(unattributed))


def _order(target: ObjectRef) -> Any:
    return lambda path: (path.head != target, path.head)


def _collection(
    evidence: Evidence, kind: str, scope: str, namespace: str, items: int
) -> Collection:
    return Collection(kind, scope, namespace, evidence.listing(kind), items)


def _check_complete(collections: Iterable[Collection]) -> None:
    for each in collections:
        if each.listing.status != "Complete":
            raise NoTree(
                f"runtime tree requires complete runtime evidence: {each.kind} collection is "
                f"{each.listing.status.lower()} (pages={each.listing.pages} items={each.items}); "
                "restore list access or narrow the runtime scope, then retry"
            )


def _path(snapshot: Snapshot, head: ObjectRef, dependents: Iterable[ObjectRef]) -> Path:
    whole = snapshot.lineage.effective(head)
    chain, broken = whole.chain, whole.broken
    parents: list[Runtime | None] = [None, *chain[:-1]]
    refs = [each.ref for each in reversed(chain)]
    issue = None
    if broken is not None and broken.preset is None:  # a preset says nothing of the chain
        name = _parent_name(chain[0])
        if broken.reason == "InheritanceCycle":
            parents[0] = snapshot.lineage.parent(chain[-1], name)
            refs.extend([parents[0].ref] if parents[0] is not None else [])
        issue = TreeIssue(_ISSUES[broken.reason], head, name, tuple(refs))
    steps = tuple(
        Step(each.ref, _parent_name(each), None if parent is None else parent.ref)
        for each, parent in zip(chain, parents, strict=True)
    )
    return Path(head, steps, tuple(dependents), issue)


def _parent_name(runtime: Runtime) -> str:
    return runtime.annotations.get(INHERIT_FROM) or ""


def _attribute(
    snapshot: Snapshot, services: Iterable[InferenceService]
) -> tuple[Mapping[ObjectRef, list[ObjectRef]], list[Unattributed]]:
    """The services that name each runtime, and those whose runtime can't be told from their spec."""
    users: dict[ObjectRef, list[ObjectRef]] = defaultdict(list)
    rest = []
    for service in services:
        named = (service.raw.get("spec") or {}).get("runtime") or {}
        outcome = _runtime_named(snapshot, service, named)
        if isinstance(outcome, Unattributed):
            rest.append(outcome)
        else:
            users[outcome].append(service.ref)
    return users, rest


def _runtime_named(
    snapshot: Snapshot, service: InferenceService, named: Mapping[str, Any]
) -> ObjectRef | Unattributed:
    name = named.get("name")
    if not name:
        return Unattributed(service.ref, "Unresolved", "AutomaticSelection")
    if name_faults(name):
        return Unattributed(service.ref, "Invalid", "InvalidRuntimeName")
    found = find_runtime(snapshot, service.namespace, name, runtime_kind(named))
    if found is None:
        return Unattributed(service.ref, "Unresolved", "RuntimeNotFound", name)
    return found.ref
