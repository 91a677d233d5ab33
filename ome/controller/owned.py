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
from ome.controller.client import MANAGER
from ome.controller.resources import ref_of
from ome.planning.live import Scaler, Workload, read_scaler, read_workload
from ome.planning.metadata import SERVICE_LABEL

__all__ = [
    "APPLIED_HASH",
    "Owned",
    "OwnedObjects",
    "controlling_service",
    "covers",
    "desired_hash",
    "version_of",
]

Json = dict[str, Any]

APPLIED_HASH: Final = "ome.io/applied-hash"
# What the API server fills into the keys of a list's items.
_DEFAULTS: Final = {"protocol": "TCP"}
_COMPONENT: Final = "component"
_GROUP: Final = API_VERSION.partition("/")[0]
_NOT_APPLIED: Final = frozenset({"apiVersion", "kind", "status"})
_OWN_METADATA: Final = ("labels", "annotations", "ownerReferences")


@dataclass(slots=True)
class Owned:
    """One object. `owner` is the uid of the service that controls it, `service` that service's name (""
    for neither); `holds` is the hash of what is known to hold, `fields` what our manager owns until that
    is known. `state` is what others have to say in a workload's spec, its count left out."""

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
    workload: Workload | None = None
    scaler: Scaler | None = None

    def is_as(self, desired: Json, wanted: str) -> bool:
        """Whether what is desired, with the hash `wanted`, was applied and still holds."""
        if self.applied != wanted:
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
        if new.applied == wanted:
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
    fields = _our_fields(metadata)
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
        state=desired_hash(_of_others(metadata)) if is_workload else "",
        workload=read_workload(raw) if is_workload else None,
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


def _of_others(metadata: Json) -> list[Any]:
    """What other managers own of an object's spec, its count left out, and since when."""
    found = []
    for entry in metadata.get("managedFields") or ():
        if entry.get("manager") == MANAGER and entry.get("operation") == "Apply":
            continue
        fields = dict((entry.get("fieldsV1") or {}).get("f:spec") or {})
        fields.pop("f:replicas", None)
        if fields:
            found.append([entry.get("manager"), entry.get("time"), fields])
    return found


def _our_fields(metadata: Json) -> Json:
    for entry in metadata.get("managedFields") or ():
        if (
            entry.get("manager") == MANAGER
            and entry.get("operation") == "Apply"
            and not entry.get("subresource")
        ):
            found: Json = entry.get("fieldsV1") or {}
            return found
    return {}


def covers(fields: Mapping[str, Any], desired: Json) -> bool:
    """Whether a field manager owns every field of what is desired.

    `fields` is `fieldsV1` of its entry in `managedFields` (Kubernetes server-side apply document): `f:`
    before a field, `k:` before the keys of a list's item, `v:` before a set's value, and nothing below
    what is owned whole.
    """
    metadata = desired.get("metadata") or {}
    wanted = {key: value for key, value in desired.items() if key not in _NOT_APPLIED}
    wanted["metadata"] = {key: metadata[key] for key in _OWN_METADATA if metadata.get(key)}
    return _covers(fields, wanted)


def _covers(fields: Mapping[str, Any], value: Any) -> bool:
    if not fields:
        return True
    if isinstance(value, dict):
        return all(_has(fields, f"f:{key}", child) for key, child in value.items())
    if isinstance(value, list):
        return all(_covers_item(fields, item) for item in value)
    return True


def _has(fields: Mapping[str, Any], key: str, value: Any) -> bool:
    child = fields.get(key)
    if child is None:
        return value is None or value == {} or value == []
    return _covers(child, value)


def _covers_item(fields: Mapping[str, Any], item: Any) -> bool:
    if not isinstance(item, dict):
        return any(key.startswith("v:") and json.loads(key[2:]) == item for key in fields)
    for key, child in fields.items():
        if key.startswith("k:"):
            keys = json.loads(key[2:])
            if all(item.get(name, _DEFAULTS.get(name)) == value for name, value in keys.items()):
                return _covers(child, item)
    return False
