"""What services own, as far as the controller has to know it: who owns an object, what was last applied
to it, and whether that still holds.

An object that was applied says so in the annotation `ome.io/applied-hash`. It still holds as long as
our field manager owns every field that we want: whoever changes one takes it over. So an object that is
as it should be is known by its metadata alone, without comparing values that the API server writes its
own way, and without a request, after a restart too.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from ome.api import API_VERSION, InferenceService, ObjectRef
from ome.controller.fields import MENDER, covers, foreign_paths, our_fields, spec_of_others
from ome.controller.resources import ref_of
from ome.planning.live import Scaler, Workload, read_scaler, read_workload
from ome.planning.metadata import SERVICE_LABEL

__all__ = [
    "APPLIED_HASH",
    "Owned",
    "OwnedObjects",
    "controlling_service",
    "desired_hash",
    "ending_of",
    "version_of",
]

Json = dict[str, Any]

APPLIED_HASH: Final = "ome.io/applied-hash"
_COMPONENT: Final = "component"
_GROUP: Final = API_VERSION.partition("/")[0]


@dataclass(slots=True)
class Owned:
    """One object. `owner` is the uid of the service that controls it, `service` that service's name (""
    for neither); `holds` is the hash of what is known to hold, `fields` what our manager owns until that
    is known. `state` is what others have to say in a workload's spec, its count left out. `ending` are the
    finalizers that hold it up while it is being deleted; None while it isn't. `half_mended` says that
    mending it was cut off."""

    ref: ObjectRef
    uid: str
    version: int
    owner: str
    service: str
    component: str
    applied: str
    fields_digest: str
    fields: Mapping[str, Any] | None
    owns_replicas: bool = False
    replicas: int | None = None
    holds: str = ""
    state: str = ""
    ending: tuple[str, ...] | None = None
    half_mended: bool = False
    workload: Workload | None = None
    scaler: Scaler | None = None

    def is_as(self, desired: Json, wanted: str) -> bool:
        """Whether what is desired, with the hash `wanted`, was applied and still holds."""
        if self.applied != wanted or self.half_mended:
            return False
        if self.holds != wanted and self.fields is not None and covers(self.fields, desired):
            self.holds, self.fields = wanted, None
        return self.holds == wanted

    def tells_what(self, old: Owned) -> bool:
        """Whether an earlier state of the same object had all that counts, too."""
        return self == replace(old, version=self.version, holds=self.holds, fields=self.fields)

    def is_what(self, old: Owned) -> bool:
        """Whether nobody has changed the object since an earlier state, however it fares."""
        return self.tells_what(
            replace(old, workload=self.workload, scaler=self.scaler, replicas=self.replicas)
        )


class OwnedObjects:
    """Every object that carries a service's label, by name and by owner.

    `seen` tells of a kind the version up to which the watch has told everything.
    """

    def __init__(self, seen: Callable[[str], int] = lambda kind: 0) -> None:
        self._seen = seen
        self._objects: dict[ObjectRef, Owned] = {}
        self._of: dict[str, dict[ObjectRef, Owned]] = {}

    def get(self, ref: ObjectRef) -> Owned | None:
        """The object, or None."""
        return self._objects.get(ref)

    def of(self, uid: str) -> Iterator[Owned]:
        """What a service of this uid controls, in a fixed order."""
        found = self._of.get(uid, {})
        return iter([found[ref] for ref in sorted(found)])

    def known(self, kind: str) -> list[ObjectRef]:
        """The objects of a kind."""
        return [ref for ref in self._objects if ref.kind == kind]

    def __len__(self) -> int:
        return len(self._objects)

    def put(self, raw: Json) -> Owned | None:
        """Take in an object; None for a state that is older than the known one, or the same."""
        new = _read(raw)
        old = self._objects.get(new.ref)
        if old is not None and old.uid == new.uid:
            if new.version <= old.version:
                return None
            if new.fields_digest == old.fields_digest:
                new.holds = old.holds
                if old.fields is None and new.applied == old.holds:
                    new.fields = None
        if old is not None:
            self._forget(old)
        self._objects[new.ref] = new
        if new.owner:
            self._of.setdefault(new.owner, {})[new.ref] = new
        return new

    def applied(self, raw: Json, wanted: str) -> None:
        """Take in what the API server made of an apply: it holds, if it isn't gone again by now."""
        ref = ref_of(raw)
        if ref not in self._objects and version_of(raw) <= self._seen(ref.kind):
            return
        new = self.put(raw) or self._objects[ref]
        # A later state, which the watch told first, may have lost a field again: `covers` decides of it.
        is_answer = (new.uid, new.version) == (raw["metadata"]["uid"], version_of(raw))
        if is_answer and new.applied == wanted:
            new.holds, new.fields = wanted, None

    def remove(self, ref: ObjectRef, uid: str = "") -> Owned | None:
        """Forget an object, if it is still the one with this uid."""
        old = self._objects.get(ref)
        if old is None or (uid and old.uid != uid):
            return None
        self._forget(old)
        del self._objects[ref]
        return old

    def _forget(self, old: Owned) -> None:
        group = self._of.get(old.owner)
        if group is not None:
            group.pop(old.ref, None)
            if not group:
                del self._of[old.owner]


def version_of(raw: Mapping[str, Any]) -> int:
    """The resourceVersion; versions of one resource are ordered as numbers (Kubernetes API concepts)."""
    return int(raw["metadata"]["resourceVersion"])


def desired_hash(desired: Any) -> str:
    """16 hex digits that identify what is applied."""
    text = json.dumps(desired, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _read(raw: Json) -> Owned:
    metadata = raw["metadata"]
    labels = metadata.get("labels") or {}
    owner = controlling_service(metadata)
    fields = our_fields(metadata)
    digest = desired_hash(fields)
    spec = raw.get("spec") or {}
    kind = raw["kind"]
    is_workload = kind == "Deployment"
    return Owned(
        ref=ref_of(raw),
        uid=metadata["uid"],
        version=version_of(raw),
        owner=owner.get("uid", ""),
        service=owner.get("name", "") or labels.get(SERVICE_LABEL, ""),
        component=labels.get(_COMPONENT, ""),
        applied=(metadata.get("annotations") or {}).get(APPLIED_HASH, ""),
        fields_digest=digest,
        fields=fields,
        owns_replicas="f:replicas" in fields.get("f:spec", {}),
        replicas=spec.get("replicas") if is_workload else None,
        state=desired_hash(spec_of_others(metadata)) if is_workload else "",
        ending=ending_of(metadata),
        half_mended=any(
            each.get("manager") == MENDER for each in metadata.get("managedFields") or ()
        ),
        workload=read_workload(raw, foreign_paths(metadata, "template", "spec"))
        if is_workload
        else None,
        scaler=read_scaler(raw) if kind in ("HorizontalPodAutoscaler", "ScaledObject") else None,
    )


def controlling_service(metadata: Json) -> Json:
    """The reference to the InferenceService that controls an object; empty when there is none."""
    for reference in metadata.get("ownerReferences") or ():
        group = str(reference.get("apiVersion", "")).rpartition("/")[0]
        if (
            reference.get("controller")
            and reference.get("kind") == InferenceService.KIND
            and group == _GROUP
        ):
            found: Json = reference
            return found
    return {}


def ending_of(metadata: Json) -> tuple[str, ...] | None:
    """The finalizers that hold up an object that is being deleted; None for one that isn't."""
    if not metadata.get("deletionTimestamp"):
        return None
    return tuple(metadata.get("finalizers") or ())
