"""The watches of the controller: which resources, which of their objects, and where they go.

Only what OME needs is watched: its own kinds, what carries a service's label, its namespace's
ControllerRevisions and one ConfigMap, nodes, and the names of CustomResourceDefinitions. Never Secrets,
never foreign pods.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from ome.api import KINDS, ObjectRef
from ome.controller.client import Api
from ome.controller.configmap import ConfigFeed
from ome.controller.resources import BY_KIND, OWNED, Resource
from ome.controller.telemetry import Metrics
from ome.controller.watching import Selection, State, Watcher
from ome.controller.world import World
from ome.planning.metadata import SERVICE_LABEL
from ome.snapshot import CONFIG_NAME, EVERY_API

__all__ = ["Feeds"]

Json = dict[str, Any]

_OURS: Final = Selection(labels=SERVICE_LABEL)
_REVISION_LABEL: Final = "ome.io/runtime-of"
_CRD: Final = "CustomResourceDefinition"
# Without these nothing can be decided; the others are missed where they are needed.
_NEEDED: Final = frozenset({*KINDS, "Deployment", "ConfigMap", "ControllerRevision"})


@dataclass(frozen=True, slots=True)
class _Sink:
    """A sink made of functions."""

    put: Callable[[Json], None]
    remove: Callable[[ObjectRef], None]
    known: Callable[[], Iterable[ObjectRef]]


class _Definitions:
    """The CustomResourceDefinitions that exist, by name."""

    def __init__(self, changed: Callable[[str, bool], None]) -> None:
        self.names: set[str] = set()
        self._changed = changed

    def put(self, raw: Json) -> None:
        name = raw["metadata"]["name"]
        is_new = name not in self.names
        self.names.add(name)
        if is_new:
            self._changed(name, True)

    def remove(self, ref: ObjectRef) -> None:
        self.names.discard(ref.name)
        self._changed(ref.name, False)

    def known(self) -> list[ObjectRef]:
        return [ObjectRef(_CRD, "", name) for name in self.names]


class Feeds:
    """Runs the watches. `changed` is called when `is_synced` or `problems` can have changed.

    `unreadable` tells for each kind of owned object why it isn't known, for those that aren't.
    """

    def __init__(
        self,
        api: Api,
        world: World,
        *,
        metrics: Metrics,
        changed: Callable[[], None],
        config_changed: Callable[[], None],
    ) -> None:
        self.unreadable: dict[str, str] = {}
        self._api = api
        self._world = world
        self._metrics = metrics
        self._changed = changed
        world.seen = self._seen
        self._definitions = _Definitions(self._defined)
        self._config = ConfigFeed(world, config_changed)
        self._crds = self._watcher(
            BY_KIND[_CRD], _sink(self._definitions), Selection(metadata_only=True)
        )
        self._watchers: dict[str, Watcher] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self._started = False
        self._was_synced = False
        for resource, sink, selection in self._sources():
            self._watchers[resource.kind] = self._watcher(resource, sink, selection)
        self._states_changed()

    def _seen(self, kind: str) -> int:
        watcher = self._watchers.get(kind)
        return watcher.version if watcher else 0

    def _sources(self) -> Iterator[tuple[Resource, _Sink, Selection]]:
        world = self._world
        for kind in KINDS:
            known = partial(world.known, kind)
            yield BY_KIND[kind], _Sink(world.put, world.remove, known), Selection()
        for resource in OWNED:
            known = partial(world.owned.known, resource.kind)
            yield resource, _Sink(world.put_owned, world.remove_owned, known), _OURS
        yield BY_KIND["Pod"], _Sink(world.put_pod, world.remove_pod, world.pods.known), _OURS
        nodes = _Sink(world.put_node, world.remove_node, world.known_nodes)
        yield BY_KIND["Node"], nodes, Selection()
        revisions = _Sink(world.put_revision, world.remove_revision, world.known_revisions)
        own = Selection(namespace=world.ome_namespace, labels=_REVISION_LABEL)
        yield BY_KIND["ControllerRevision"], revisions, own
        config = Selection(namespace=world.ome_namespace, fields=f"metadata.name={CONFIG_NAME}")
        yield BY_KIND["ConfigMap"], _sink(self._config), config

    def _watcher(self, resource: Resource, sink: _Sink, selection: Selection) -> Watcher:
        return Watcher(
            self._api,
            resource,
            sink,
            selection=selection,
            metrics=self._metrics,
            changed=self._states_changed,
            can_be_missing=lambda: self._can_be_missing(resource),
        )

    @property
    def is_synced(self) -> bool:
        """Whether enough is known to decide: every watch has seen what there is or can't, and none that
        is needed can't. A kind that comes after that holds up only what needs it."""
        return self._crds_settled() and all(
            _is_known(watcher)
            or (kind not in _NEEDED and (self._was_synced or _is_settled(watcher)))
            for kind, watcher in self._watchers.items()
        )

    def problems(self) -> list[str]:
        """What keeps the controller from knowing all it should, one reason each."""
        found = []
        for watcher in (self._crds, *self._watchers.values()):
            name = watcher.resource.full_name
            if watcher.state is State.NOT_SERVED:
                if watcher.resource.kind in KINDS:
                    found.append(
                        f"{name}: not served; install the CustomResourceDefinitions (ome crds)"
                    )
            elif not watcher.is_ready or watcher.problem:
                found.append(f"{name}: {watcher.problem or 'not read yet'}")
        return found

    async def run(self) -> None:
        """Watch until cancelled."""
        tasks = self._tasks
        try:
            tasks[_CRD] = asyncio.create_task(self._crds.run())
            while not self._crds_settled():
                await asyncio.sleep(0.01)
            self._started = True
            for kind, watcher in self._watchers.items():
                if self._is_defined(watcher.resource):
                    tasks[kind] = asyncio.create_task(watcher.run())
                else:
                    watcher.forget()
            while True:
                await self._check()
        finally:
            for task in tasks.values():
                task.cancel()
            await asyncio.gather(*tasks.values(), return_exceptions=True)

    async def _check(self) -> None:
        """Let a fault of our own in a watch end the process, rather than leave it with an old view."""
        done, _ = await asyncio.wait(
            list(self._tasks.values()), timeout=1.0, return_when=asyncio.FIRST_EXCEPTION
        )
        for task in done:
            if not task.cancelled() and (error := task.exception()) is not None:
                raise error

    def _crds_settled(self) -> bool:
        return _is_known(self._crds) or self._crds.state is State.FORBIDDEN

    def _is_defined(self, resource: Resource) -> bool:
        """Whether a kind can be there: built in, defined, or definitions can't be read."""
        if not resource.crd or self._crds.state is State.FORBIDDEN:
            return True
        return resource.crd in self._definitions.names

    def _can_be_missing(self, resource: Resource) -> bool:
        """Whether a 404 can mean that a kind isn't served: only of one that isn't defined, as far as
        that can be read. A proxy's 404 for another one must not make what is known vanish."""
        if self._crds.state is State.FORBIDDEN:
            return bool(resource.crd)
        return not self._is_defined(resource)

    def _defined(self, name: str, exists: bool) -> None:
        """A definition came or went."""
        if not self._started:
            return
        for kind, watcher in self._watchers.items():
            if watcher.resource.crd != name:
                continue
            if (task := self._tasks.pop(kind, None)) is not None:
                task.cancel()
            if exists:
                self._tasks[kind] = asyncio.create_task(watcher.run())
            else:
                watcher.forget()

    def _states_changed(self) -> None:
        before = self._world.unknown
        self.unreadable.clear()
        for resource in OWNED:
            watcher = self._watchers.get(resource.kind)
            if watcher is not None and not watcher.is_ready:
                self.unreadable[resource.kind] = _why(watcher)
        unknown = {
            kind
            for kind in ("Node", "Pod")
            if (watcher := self._watchers.get(kind)) is not None and not watcher.is_ready
        }
        self._world.unknown = frozenset(unknown | self.unreadable.keys())
        served = {
            each
            for each in EVERY_API
            if (watcher := self._watchers.get(each.kind)) is not None and watcher.is_ready
        }
        self._world.set_served(frozenset(served))
        if before - self._world.unknown:
            self._world.resync()
        self._was_synced = self._was_synced or self.is_synced
        self._changed()


def _sink(target: Any) -> _Sink:
    return _Sink(target.put, target.remove, target.known)


def _is_settled(watcher: Watcher) -> bool:
    return _is_known(watcher) or watcher.state in (State.FORBIDDEN, State.FAILING)


def _is_known(watcher: Watcher) -> bool:
    return watcher.is_ready or watcher.state is State.NOT_SERVED


def _why(watcher: Watcher) -> str:
    name = watcher.resource.full_name
    if watcher.state is State.NOT_SERVED:
        return f"the API server doesn't serve {name}; install what defines it"
    return f"{name} can't be read: {watcher.problem or 'not read yet'}"
