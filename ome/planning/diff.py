"""The blast radius of a change: which services render differently, why, and which pods restart.

Compares what two snapshots render to. Every changed field is attributed to the layer that sets it, so
that a change of one shared runtime reads as one cause with the services that it reaches. What an upgrade of
OME or of a plugin brings is told from what the input brings by a third render between the two: the old
input with the new versions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from ome.api import ObjectRef
from ome.engines.engines import Engines
from ome.planning.planner import plan
from ome.planning.rendered import Rendered
from ome.planning.trace import leaves
from ome.snapshot import Snapshot

__all__ = ["Between", "FieldChange", "ServiceChange", "compare", "render_all"]

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


@dataclass(frozen=True, slots=True)
class Between:
    """The old input as the new versions of OME and its plugins render it, and what differs between the
    versions: the cause of every change that the input doesn't bring."""

    services: Sequence[Rendered]
    cause: str


def render_all(snapshot: Snapshot, engines: Engines) -> list[Rendered]:
    """What every service of a snapshot renders to, by namespace and name."""
    return [
        Rendered.of(plan(snapshot, service, engines, provenance=True))
        for service in snapshot.services()
    ]


def compare(
    before: Sequence[Rendered], after: Sequence[Rendered], between: Between | None = None
) -> Iterator[ServiceChange]:
    """The services that render differently, by namespace and name."""
    old, new = ({each.service: each for each in side} for side in (before, after))
    middle = {each.service: each for each in between.services} if between else {}
    for ref in sorted({*old, *new}):
        first, second = old.get(ref), new.get(ref)
        causes = _Causes(middle.get(ref, first), between.cause if between else "")
        change = _compare(ref, first, second, causes)
        if change is not None:
            yield change


def _compare(
    ref: ObjectRef, first: Rendered | None, second: Rendered | None, causes: _Causes
) -> ServiceChange | None:
    old, new = _objects(first), _objects(second)
    runtime = (first.runtime if first else None, second.runtime if second else None)
    refusal = (first.refusal if first else None, second.refusal if second else None)
    if first is None or second is None:
        kind = "Added" if first is None else "Removed"
        return ServiceChange(ref, kind, runtime, refusal, tuple(new), tuple(old))
    changes = [
        change
        for name in new
        if name in old
        for change in causes.fields(name, (first, old[name]), (second, new[name]))
    ]
    result = ServiceChange(
        ref,
        "Changed",
        runtime,
        refusal,
        tuple(name for name in new if name not in old),
        # What a refusal holds back stays as it is: nothing of it is removed.
        () if second.refusal else tuple(name for name in old if name not in new),
        tuple(changes),
        tuple(dict.fromkeys(change.object for change in changes if change.restarts)),
    )
    same = result.runtime[0] == result.runtime[1] and result.refusal[0] == result.refusal[1]
    is_empty = same and not (result.added or result.removed or result.fields)
    return None if is_empty else result


def _objects(rendered: Rendered | None) -> dict[str, Json]:
    found = rendered.objects if rendered is not None else ()
    return {f"{item['kind']}/{item['metadata']['name']}": item for item in found}


_Side = tuple[Rendered, Json]
_MISSING: Final = object()


@dataclass(frozen=True, slots=True)
class _Causes:
    """Says for one service what each changed field comes from: `middle` is its render between the two,
    and `versions` what brought the difference to the first one."""

    middle: Rendered | None
    versions: str

    def fields(self, name: str, old: _Side, new: _Side) -> Iterator[FieldChange]:
        """The changed fields of one object."""
        (first, was_object), (second, now_object) = old, new
        middle = self.middle or first
        before, after = dict(leaves(was_object)), dict(leaves(now_object))
        base = dict(leaves(_objects(middle).get(name, {}))) if self.versions else before
        component = (now_object["metadata"].get("labels") or {}).get("component", "")
        for path in sorted({*before, *after}):
            was, now = before.get(path, _MISSING), after.get(path, _MISSING)
            if was == now:
                continue
            between = base.get(path, _MISSING)
            causes = []
            if between != now:
                there = now is not _MISSING
                sides = (_plain(between), middle), (_plain(now), second)
                causes.append(_cause_of(component, path, *sides, is_there=there))
            if between != was:
                causes.append(self.versions)
            yield FieldChange(name, path, _shown(was), _shown(now), " and ".join(causes))


def _plain(value: Any) -> Any:
    return None if value is _MISSING else value


def _shown(value: Any) -> Any:
    """A value as JSON data."""
    return list(value) if isinstance(value, tuple) else _plain(value)


def _cause_of(
    component: str,
    path: str,
    old: tuple[Any, Rendered],
    new: tuple[Any, Rendered],
    *,
    is_there: bool,
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


def _cause(rendered: Rendered, component: str, path: str, words: Sequence[int] | None) -> str:
    """The layers that set a field (of a list: these words), by the provenance of its component."""
    provenance = rendered.layers.get(component, {})
    for candidate in _places(path):
        paths = [candidate] if words is None else [f"{candidate}[{at}]" for at in words]
        found = [provenance[each] for each in paths if each in provenance]
        if found:
            return " and ".join(dict.fromkeys(found))
    return "InferenceService" if component not in _COMPONENTS else "OME"


def _remover(rendered: Rendered, component: str, path: str) -> str:
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
