"""The blast radius of a change: which services render differently, why, and which pods restart.

Compares the plans of two snapshots. Every changed field is attributed to the layer that sets it, so that
a change of one shared runtime reads as one cause with the services that it reaches.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ome.api import ObjectRef
from ome.engines.engines import Engines
from ome.planning.plan import Plan
from ome.planning.planner import plan
from ome.planning.trace import leaves
from ome.snapshot import Snapshot

__all__ = ["FieldChange", "ServiceChange", "diff"]

Json = Mapping[str, Any]

_TEMPLATE: Final = "spec.template."
_POD: Final = "spec.template.spec."
_COMPONENTS: Final = ("engine", "decoder", "router")


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field of one rendered object. A value is None where the field isn't there; `cause` is the
    layer that sets it now (when it is gone, the one that removes it, or else the one that set it)."""

    object: str
    path: str
    before: Any
    after: Any
    cause: str

    @property
    def restarts(self) -> bool:
        """Whether the change rolls pods: it is in the template of a Deployment."""
        return self.object.startswith("Deployment/") and self.path.startswith(_TEMPLATE)

    @property
    def field(self) -> str:
        """The field without its position in the object: what a cause is told by."""
        return self.path.removeprefix(_POD).removeprefix(_TEMPLATE)


@dataclass(frozen=True, slots=True)
class ServiceChange:
    """What a change does to one service: `kind` is Added, Removed or Changed."""

    service: ObjectRef
    kind: str
    runtime: tuple[str | None, str | None] = (None, None)
    refusal: tuple[str | None, str | None] = (None, None)
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    fields: tuple[FieldChange, ...] = ()
    restarts: tuple[str, ...] = field(default=())

    @property
    def chooses_anew(self) -> bool:
        """Whether OME would now choose (or be told) another runtime."""
        before, after = self.runtime
        return before is not None and after is not None and before != after


def diff(before: Snapshot, after: Snapshot, engines: Engines) -> Iterator[ServiceChange]:
    """The services that render differently, by namespace and name."""
    old = {service.ref: service for service in before.services()}
    new = {service.ref: service for service in after.services()}
    for ref in sorted({*old, *new}):
        first = plan(before, old[ref], engines, provenance=True) if ref in old else None
        second = plan(after, new[ref], engines, provenance=True) if ref in new else None
        change = _compare(ref, first, second)
        if change is not None:
            yield change


def _compare(ref: ObjectRef, first: Plan | None, second: Plan | None) -> ServiceChange | None:
    old, new = _objects(first), _objects(second)
    if first is None or second is None:
        kind = "Added" if first is None else "Removed"
        return ServiceChange(
            ref,
            kind,
            (_runtime(first), _runtime(second)),
            (_refusal(first), _refusal(second)),
            tuple(new),
            tuple(old),
        )
    changes = [
        change
        for name in new
        if name in old
        for change in _fields(name, old[name], new[name], first, second)
    ]
    result = ServiceChange(
        ref,
        "Changed",
        (_runtime(first), _runtime(second)),
        (_refusal(first), _refusal(second)),
        tuple(name for name in new if name not in old),
        tuple(name for name in old if name not in new),
        tuple(changes),
        tuple(dict.fromkeys(change.object for change in changes if change.restarts)),
    )
    same = result.runtime[0] == result.runtime[1] and result.refusal[0] == result.refusal[1]
    is_empty = same and not (result.added or result.removed or result.fields)
    return None if is_empty else result


def _objects(rendered: Plan | None) -> dict[str, Json]:
    found = rendered.objects() if rendered is not None else ()
    return {f"{item['kind']}/{item['metadata']['name']}": item for item in found}


def _runtime(rendered: Plan | None) -> str | None:
    decision = rendered.decision if rendered is not None else None
    return None if decision is None else str(decision["runtime"])


def _refusal(rendered: Plan | None) -> str | None:
    if rendered is None:
        return None
    return next((problem.message for _, problem in rendered.refusals()), None)


def _fields(name: str, old: Json, new: Json, first: Plan, second: Plan) -> Iterator[FieldChange]:
    before, after = dict(leaves(old)), dict(leaves(new))
    component = (new["metadata"].get("labels") or {}).get("component", "")
    for path in sorted({*before, *after}):
        was, now = before.get(path), after.get(path)
        if was == now and (path in before) is (path in after):
            continue
        cause = _cause_of(component, path, (was, first), (now, second), is_there=path in after)
        yield FieldChange(name, path, _plain(was), _plain(now), cause)


def _cause_of(
    component: str, path: str, old: tuple[Any, Plan], new: tuple[Any, Plan], *, is_there: bool
) -> str:
    """The layers of what a change brings, or of what it takes away."""
    (was, first), (now, second) = old, new
    if isinstance(was, tuple) and isinstance(now, tuple):
        added = [at for at, word in enumerate(now) if word not in was]
        gone = [at for at, word in enumerate(was) if word not in now]
        if added or not gone:
            return _cause(second, component, path, added or range(len(now)))
        return _cause(first, component, path, gone)
    if not is_there and (layer := _remover(second, component, path)):
        return layer
    value, source = (now, second) if is_there else (was, first)
    words = range(len(value)) if isinstance(value, tuple) else None
    return _cause(source, component, path, words)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def _cause(rendered: Plan, component: str, path: str, words: Sequence[int] | None) -> str:
    """The layers that set a field (of a list: these words), by the provenance of its component."""
    provenance = rendered.provenance.get(component, {})
    for candidate in _places(path):
        paths = [candidate] if words is None else [f"{candidate}[{at}]" for at in words]
        found = [provenance[each][1] for each in paths if each in provenance]
        if found:
            return " and ".join(dict.fromkeys(found))
    return "InferenceService" if component not in _COMPONENTS else "OME"


def _remover(rendered: Plan, component: str, path: str) -> str:
    """The layer that removes a field that lower layers set; "" when none does."""
    removals = rendered.removals.get(component, {})
    return next((removals[each] for each in _places(path) if each in removals), "")


def _places(path: str) -> Iterator[str]:
    """Where provenance may have a field: in the pod (a leader's too), or among the settings."""
    if path.startswith(_POD):
        yield path.removeprefix(_POD)
        yield "leader." + path.removeprefix(_POD)
    for prefix in ("metadata.", "spec.template.metadata.", "spec."):
        if path.startswith(prefix):
            yield path.removeprefix(prefix)
