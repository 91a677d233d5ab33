"""Automatic selection: which runtime OME chooses for a service, and when it chooses again.

A choice is recorded in the service's status with a digest of what triggers a new one: the service's
own spec, labels and annotations, and its Deployments. As long as that is the same and the runtime is
there and enabled, the choice stays; a resync or a restart never chooses again. Source: OME
"Troubleshoot runtime selection" and serving-runtimes documents (v1.3); docs/adr for the record.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ome.api import InferenceService, ObjectRef
from ome.merging.directives import own_spec
from ome.scoring.ranking import tie_break
from ome.scoring.verdict import Request, Verdict, judge
from ome.snapshot import Runtime, Snapshot

__all__ = [
    "RECORD",
    "Selection",
    "explain",
    "no_runtime_message",
    "number",
    "select",
    "trigger_of",
]

Json = Mapping[str, Any]

# The field of the service's status that holds the record.
RECORD: Final = "runtimeSelection"
# In the record: the content of the chosen runtime's spec.
_SPEC_DIGEST: Final = "runtimeDigest"
_NOT_A_TRIGGER: Final = frozenset({"kubectl.kubernetes.io/last-applied-configuration"})
_RUNNERS_UP: Final = 5
_MOST_EXCLUDED: Final = 25
_MOST_BYTES: Final = 8 * 1024


@dataclass(frozen=True, slots=True)
class Selection:
    """A chosen runtime. `ranked` holds the winner and those after it; it is empty for a choice that
    was kept, which `record` then carries on unchanged."""

    runtime: Runtime
    record: Json
    ranked: tuple[Verdict, ...] = ()

    @property
    def kept(self) -> bool:
        """Whether the recorded choice was kept."""
        return not self.ranked

    @property
    def is_outdated(self) -> bool:
        """Whether the runtime's spec is another one than when it was chosen: it is picked up when OME
        chooses again."""
        known = self.record.get(_SPEC_DIGEST)
        return self.kept and known is not None and known != _digest(self.runtime.raw.get("spec"))


def select(snapshot: Snapshot, service: InferenceService, model_spec: Json) -> Selection | None:
    """The runtime of a service that names none: the recorded one while nothing triggers a new choice,
    else the best one; None when no runtime qualifies."""
    trigger = trigger_of(snapshot, service)
    kept = _kept(snapshot, service, trigger)
    if kept is not None:
        return kept
    request = Request.of(service.raw)
    ranked = snapshot.runtime_index.choose(service.namespace, model_spec, request)
    if not ranked:
        return None
    winner = snapshot.runtime_of(ranked[0].runtime)
    assert winner is not None
    return Selection(winner, _record(winner, ranked, trigger), tuple(ranked))


def trigger_of(snapshot: Snapshot, service: InferenceService) -> str:
    """A digest of what makes OME choose again: spec, labels, annotations and what it owns."""
    annotations = {
        key: value for key, value in service.annotations.items() if key not in _NOT_A_TRIGGER
    }
    live = sorted(
        (ref.kind, ref.name, token)
        for ref, token in snapshot.live.items()
        if ref.namespace == service.namespace
    )
    return _digest([service.raw.get("spec"), service.labels, annotations, live])


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _kept(snapshot: Snapshot, service: InferenceService, trigger: str) -> Selection | None:
    if not snapshot.keeps_choices:
        return None
    status = service.raw.get("status")
    record = status.get(RECORD) if isinstance(status, dict) else None
    if not isinstance(record, dict) or record.get("trigger") != trigger:
        return None
    kind, namespace, name = (record.get(key) or "" for key in ("kind", "namespace", "name"))
    runtime = snapshot.runtime_of(ObjectRef(str(kind), str(namespace), str(name)))
    if runtime is None or own_spec(runtime).get("disabled") is True:
        return None
    return Selection(runtime, record)


def _record(winner: Runtime, ranked: Sequence[Verdict], trigger: str) -> Json:
    """The choice in the form that goes into the service's status."""
    best = ranked[0]
    second = ranked[1] if len(ranked) > 1 else None
    record: dict[str, Any] = {
        "kind": winner.KIND,
        **({"namespace": winner.namespace} if winner.namespace else {}),
        "name": winner.name,
        "score": best.score,
        "tieBreak": str(tie_break(best, second)),
        "trigger": trigger,
        _SPEC_DIGEST: _digest(winner.raw.get("spec")),
        "digest": _digest(
            [winner.raw.get("spec"), [_brief(each) for each in ranked[: 1 + _RUNNERS_UP]]]
        ),
    }
    if second is not None:
        record["runnersUp"] = [_brief(each) for each in ranked[1 : 1 + _RUNNERS_UP]]
    return record


def _brief(verdict: Verdict) -> Json:
    return {
        "runtime": str(verdict.runtime),
        "score": verdict.score,
        "distance": number(verdict.distance),
    }


def number(value: Any) -> int | float:
    """A decimal as a JSON number."""
    return int(value) if value == value.to_integral_value() else float(value)


def explain(
    snapshot: Snapshot, namespace: str, model_spec: Json, request: Request
) -> Iterator[Verdict]:
    """The verdict on every runtime that a service of a namespace can see, its own first, by name."""
    for ref in snapshot.runtime_index.visible(namespace):
        runtime = snapshot.runtime_of(ref)
        if runtime is not None:
            yield judge(ref, own_spec(runtime), model_spec, request)


def no_runtime_message(snapshot: Snapshot, service: InferenceService, model_spec: Json) -> str:
    """Why no runtime qualifies, naming every excluded runtime with its reason, as far as fits."""
    verdicts = list(explain(snapshot, service.namespace, model_spec, Request.of(service.raw)))
    model_format = (model_spec.get("modelFormat") or {}).get("name", "")
    text = (
        f"no runtime found to support model {model_format} with format {model_format} in namespace "
        f"{service.namespace}"
    )
    if verdicts:
        local = sum(bool(each.runtime.namespace) for each in verdicts)
        text += (
            f". Checked {len(verdicts)} runtimes ({local} namespace-scoped, "
            f"{len(verdicts) - local} cluster-scoped)"
        )
    excluded = [
        f"{each.runtime.name} ({each.reason.message})"
        for each in verdicts
        if each.reason is not None
    ]
    if excluded:
        text += f". Excluded runtimes: {_cut(excluded)}"
    return text


def _cut(parts: Sequence[str]) -> str:
    """The parts up to 25 and 8 KB, and how many more there are."""
    kept: list[str] = []
    size = 0
    for part in parts[:_MOST_EXCLUDED]:
        size += len(part.encode()) + 2
        if size > _MOST_BYTES and kept:
            break
        kept.append(
            part if size <= _MOST_BYTES else part.encode()[:_MOST_BYTES].decode("utf-8", "ignore")
        )
    left = len(parts) - len(kept)
    return "; ".join(kept) + (f"; and {left} more" if left else "")
