"""What the controller knows of the cluster, kept up by watches: the contents of the core's snapshots.

Whatever changes here is told to whom it concerns, by `Concerns`: exactly the services and runtimes
whose plan or status can come out differently.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

from ome.api import (
    KINDS,
    AcceleratorClass,
    ApiObject,
    BaseModel,
    ClusterBaseModel,
    ClusterServingRuntime,
    InferenceService,
    InvalidObject,
    ObjectRef,
    Problem,
    ServingRuntime,
    parse,
)
from ome.controller.concerns import Concerns
from ome.controller.owned import OwnedObjects, version_of
from ome.controller.packed import Packed, View
from ome.controller.pods import Pods
from ome.controller.resources import ref_of
from ome.controller.unread import Unread
from ome.controller.workqueue import Due, Urgency
from ome.merging.directives import own_spec
from ome.planning.live import Live
from ome.planning.metadata import EXTERNAL
from ome.scoring.index import RuntimeIndex
from ome.snapshot import (
    ApiKind,
    Config,
    Kept,
    Lineage,
    PluginVersion,
    Revision,
    RevisionOf,
    Runtime,
    Snapshot,
    read_revision,
)

__all__ = ["World"]

Json = dict[str, Any]

_RUNTIMES: Final = (ServingRuntime, ClusterServingRuntime)
# What a plan looks up by name: services depend on the names that they ask for.
_LOOKED_UP: Final = (BaseModel, ClusterBaseModel, AcceleratorClass)


# How many objects stay parsed, and how many merged specs are kept.
_PARSED: Final = 1024
# Seconds from an event about what a service owns until the service is looked at. Such events come in
# series, and a status tells of them together: after somebody changed an object, and while pods and counts
# go their way.
_CHANGED: Final = 0.2
_GOES_ITS_WAY: Final = 1.0


def _no_presets(_: Runtime) -> None:
    """Presets are applied when a runtime is admitted; what is stored is filled, or never will be."""


class World:
    """Everything that plans depend on. `due` is told what has to be looked at again, how urgently, and
    in how many seconds."""

    def __init__(
        self,
        *,
        ome_namespace: str,
        plugins: Iterable[PluginVersion],
        due: Due,
    ) -> None:
        self.ome_namespace = ome_namespace
        self.config = Config()
        self.config_problems: tuple[Problem, ...] = ()
        self.has_config = False
        # Of a kind, the version up to which its watch has told everything; and what isn't known of all that
        # there is. Both are the feeds' to set.
        self.seen: Callable[[str], int] = lambda kind: 0
        self.unknown: frozenset[str] = frozenset()
        self.owned = OwnedObjects(lambda kind: self.seen(kind))
        self.pods = Pods()
        self.nodes: dict[str, Json] = {}
        self.unread = Unread()
        self._plugins = tuple(sorted(plugins))
        self._due = due
        self._objects: Packed[ApiObject] = Packed(_PARSED)
        self._versions: dict[ObjectRef, tuple[str, int]] = {}
        self._lineage = Lineage(presets=_no_presets, kept=self._objects, remembered=_PARSED)
        self._index = RuntimeIndex()
        self._served: frozenset[ApiKind] = frozenset()
        self._revisions: dict[str, Revision] = {}
        self._revisions_of: dict[RevisionOf, list[Revision]] = {}
        self.concerns = Concerns()

    # What is known.

    def service(self, ref: ObjectRef) -> InferenceService | None:
        """The service, or None."""
        found = self._objects.get(ref)
        return found if isinstance(found, InferenceService) else None

    def runtime(self, ref: ObjectRef) -> Runtime | None:
        """The runtime of either kind, or None."""
        found = self._objects.get(ref)
        return found if isinstance(found, _RUNTIMES) else None

    def accelerator_class(self, name: str) -> AcceleratorClass | None:
        """The class, or None."""
        found = self._objects.get(ObjectRef(AcceleratorClass.KIND, "", name))
        return found if isinstance(found, AcceleratorClass) else None

    def known(self, *kinds: str) -> list[ObjectRef]:
        """The objects of OME's kinds."""
        return [ref for ref in [*self._objects, *self.unread] if ref.kind in kinds]

    def known_nodes(self) -> list[ObjectRef]:
        """Every node."""
        return [ObjectRef("Node", "", name) for name in self.nodes]

    def known_revisions(self) -> list[ObjectRef]:
        """Every stored revision of a runtime."""
        return [
            ObjectRef("ControllerRevision", self.ome_namespace, name) for name in self._revisions
        ]

    def revisions(self) -> list[Revision]:
        """Every stored revision of a runtime, as it was read."""
        return list(self._revisions.values())

    def snapshot(
        self,
        now: datetime,
        service: InferenceService | None = None,
        looked_up: set[ObjectRef] | None = None,
    ) -> Snapshot:
        """What is true now, as seen by one service. The names that its plan asks for go into
        `looked_up`."""
        live: dict[ObjectRef, str] = {}
        if service is not None:
            live = {each.ref: each.state for each in self.owned.of(service.uid) if each.workload}
        contents: dict[type[ApiObject], View] = {
            kind: View(self._objects, kind, looked_up if kind in _LOOKED_UP else None)
            for kind in KINDS.values()
        }
        return Snapshot.over(
            contents,
            Kept(self._lineage, self._index, self._revisions_of),
            now=now,
            config=self.config,
            served=self._served,
            plugins=self._plugins,
            ome_namespace=self.ome_namespace,
            live=live,
            revisions=self._revisions,
        )

    def live(self, service: InferenceService) -> Live:
        """What runs for a service."""
        owned = list(self.owned.of(service.uid))
        return Live(
            workloads={each.component: each.workload for each in owned if each.workload},
            pods=None if "Pod" in self.unknown else self.pods.of(service.namespace, service.name),
            scalers={each.component: each.scaler for each in owned if each.scaler},
            front=any(each.component == EXTERNAL for each in owned),
        )

    # What changes: OME's own kinds.

    def put(self, raw: Json) -> None:
        """An object of OME's kinds, or what became of it. An older state than the known one is dropped."""
        metadata = raw["metadata"]
        metadata.pop("managedFields", None)
        ref = ObjectRef(raw["kind"], metadata.get("namespace") or "", metadata["name"])
        version = (metadata.get("uid") or "", version_of(raw))
        known = self._versions.get(ref)
        if known is not None and known[0] == version[0] and version[1] <= known[1]:
            return
        try:
            self._take(parse(raw), self._objects.get(ref), version)
        except InvalidObject as error:
            self._refuse(ref, raw, error.problems)
        except RecursionError:
            problem = Problem("TooDeep", "it is nested too deeply to be read", ref, "spec")
            self._refuse(ref, raw, (problem,))

    def wrote(self, raw: Json) -> None:
        """What the API server made of our own write of a status: it concerns nobody."""
        metadata = raw["metadata"]
        metadata.pop("managedFields", None)
        ref = ref_of(raw)
        if ref in self.unread:
            self.unread.wrote(ref, raw)
            return
        uid, version = self._versions.get(ref, ("", 0))
        if uid == metadata.get("uid", "") and version < version_of(raw):
            item = parse(raw)
            self._versions[item.ref] = (uid, version_of(raw))
            self._objects[item.ref] = item
            if isinstance(item, InferenceService):
                self.concerns.put_service(item)

    def made_revision(self, raw: Json) -> None:
        """What the API server made of our own write of a revision, if it isn't gone again by now."""
        is_known = raw["metadata"]["name"] in self._revisions
        if is_known or version_of(raw) > self.seen("ControllerRevision"):
            self.put_revision(raw)

    def _refuse(self, ref: ObjectRef, raw: Json, problems: tuple[Problem, ...]) -> None:
        """An object that OME can't read: as if it weren't there, and told."""
        if self.unread.put(ref, raw, problems):
            self._forget(ref)
            if ref.kind == InferenceService.KIND:
                # It may have been readable, and will be again: its revisions stay.
                self.concerns.keep_pins(ref, raw)
                self._due(ref, Urgency.USER)

    def _take(self, item: ApiObject, old: ApiObject | None, version: tuple[str, int]) -> None:
        spec = own_spec(item) if isinstance(item, _RUNTIMES) else {}
        self.unread.remove(item.ref)
        self._versions[item.ref] = version
        if isinstance(item, InferenceService):
            self._objects[item.ref] = item
            self.concerns.put_service(item)
            self._due(item.ref, _urgency(item, old))
        elif isinstance(item, _RUNTIMES):
            changed = self._lineage.put(item)
            self._index.put(item.ref, spec)
            self._runtimes_changed(changed or {item.ref}, bool(changed))
        else:
            self._objects[item.ref] = item
            if old is None or old.raw.get("spec") != item.raw.get("spec"):
                self._looked_up_changed(item.ref)
            elif isinstance(item, AcceleratorClass):
                self._due(item.ref, Urgency.RESYNC)

    def remove(self, ref: ObjectRef) -> None:
        """An object of OME's kinds is gone."""
        if self.unread.remove(ref) and ref.kind == InferenceService.KIND:
            self.concerns.remove_service(ref)
            self._due(ref, Urgency.USER)
        self._forget(ref)

    def _forget(self, ref: ObjectRef) -> None:
        self._versions.pop(ref, None)
        item = self._objects.get(ref)
        if isinstance(item, _RUNTIMES):
            self._index.remove(ref)
            self._runtimes_changed(self._lineage.remove(ref), True)
        elif item is not None:
            del self._objects[ref]
            if isinstance(item, InferenceService):
                self.concerns.remove_service(ref)
                self._due(ref, Urgency.USER)
            else:
                self._looked_up_changed(ref)

    def _runtimes_changed(self, runtimes: Iterable[ObjectRef], concerns_services: bool) -> None:
        for ref in runtimes:
            self._due(ref, Urgency.RESYNC)
        if concerns_services:
            snapshot = self.snapshot(_NO_TIME)
            for service in self.concerns.of_runtimes(runtimes, snapshot):
                self._due(service, Urgency.CHANGE)

    def _looked_up_changed(self, ref: ObjectRef) -> None:
        if ref.kind == AcceleratorClass.KIND:
            self._due(ref, Urgency.RESYNC)
            concerned = self.concerns.readers(ref)
        else:
            concerned = self.concerns.held_readers(ref)
        for service in concerned:
            self._due(service, Urgency.CHANGE)

    # What changes: everything else.

    def put_owned(self, raw: Json) -> None:
        """An object with a service's label, or what became of it."""
        old = self.owned.get(ref_of(raw))
        new = self.owned.put(raw)
        if new is None or (old is not None and new.tells_what(old)):
            return
        wait = _GOES_ITS_WAY if old is not None and new.is_what(old) else _CHANGED
        for service in dict.fromkeys((new.service, old.service if old else "")):
            if service:
                self._service_due(new.ref.namespace, service, wait)

    def remove_owned(self, ref: ObjectRef) -> None:
        """An object with a service's label is gone, or has lost the label."""
        if (old := self.owned.remove(ref)) is not None and old.service:
            self._service_due(ref.namespace, old.service, _CHANGED)

    def put_pod(self, raw: Json) -> None:
        """A pod of a service, or what became of it."""
        for service in self.pods.put(raw):
            self._service_due(raw["metadata"]["namespace"], service, _GOES_ITS_WAY)

    def remove_pod(self, ref: ObjectRef) -> None:
        """A pod of a service is gone."""
        if service := self.pods.remove(ref):
            self._service_due(ref.namespace, service, _GOES_ITS_WAY)

    def _service_due(self, namespace: str, name: str, wait: float) -> None:
        ref = ObjectRef(InferenceService.KIND, namespace, name)
        if ref in self._objects or ref in self.unread:
            self._due(ref, Urgency.CHANGE, wait)

    def put_node(self, raw: Json) -> None:
        """A node, or what became of it; only its labels and its capacity count."""
        name = raw["metadata"]["name"]
        kept = {
            "metadata": {"name": name, "labels": raw["metadata"].get("labels") or {}},
            "status": {"capacity": (raw.get("status") or {}).get("capacity") or {}},
        }
        if self.nodes.get(name) != kept:
            self.nodes[name] = kept
            self._nodes_changed()

    def remove_node(self, ref: ObjectRef) -> None:
        """A node is gone."""
        if self.nodes.pop(ref.name, None) is not None:
            self._nodes_changed()

    def _nodes_changed(self) -> None:
        for ref in self.known(AcceleratorClass.KIND):
            self._due(ref, Urgency.RESYNC)

    def put_revision(self, raw: Json) -> None:
        """A ControllerRevision of OME's namespace, or what became of it."""
        found = read_revision(raw)
        if found is not None and found.runtime and found != self._revisions.get(found.name):
            self.remove_revision(ObjectRef("ControllerRevision", self.ome_namespace, found.name))
            self._revisions[found.name] = found
            self._revisions_of.setdefault(found.of, []).append(found)
            self._pinned_due(found.name)

    def remove_revision(self, ref: ObjectRef) -> None:
        """A ControllerRevision is gone."""
        old = self._revisions.pop(ref.name, None)
        if old is not None:
            kept = [each for each in self._revisions_of[old.of] if each is not old]
            self._revisions_of[old.of] = kept
            if not kept:
                del self._revisions_of[old.of]
            self._pinned_due(ref.name)

    def _pinned_due(self, revision: str) -> None:
        for service in self.concerns.pinned_to(revision):
            self._due(service, Urgency.CHANGE)

    def set_served(self, served: frozenset[ApiKind]) -> None:
        """The optional kinds that the API server has now."""
        if served != self._served:
            self._served = served
            self.resync()

    def resync(self) -> None:
        """Everything is looked at again."""
        for ref in [*self._objects, *self.unread]:
            if ref.kind not in (BaseModel.KIND, ClusterBaseModel.KIND):
                self._due(ref, Urgency.RESYNC)

    def counts(self) -> Iterator[tuple[str, int]]:
        """How many objects of each kind are known."""
        counted = dict.fromkeys(KINDS, 0)
        for ref in self._objects:
            counted[ref.kind] += 1
        yield from counted.items()
        yield "Owned", len(self.owned)
        yield "Pod", len(self.pods)
        yield "ControllerRevision", len(self._revisions)


_NO_TIME: Final = datetime.fromtimestamp(0).astimezone()


def _urgency(new: InferenceService, old: ApiObject | None) -> Urgency:
    """A user's change comes first; what else changes a service is a status that somebody has written."""
    if old is None or _asked(new.raw) != _asked(old.raw):
        return Urgency.USER
    return Urgency.CHANGE


def _asked(raw: Mapping[str, Any]) -> list[Any]:
    metadata = raw["metadata"]
    names = ("uid", "labels", "annotations", "deletionTimestamp", "finalizers")
    return [raw.get("spec"), *(metadata.get(name) for name in names)]
