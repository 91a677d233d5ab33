"""Whom a change concerns: indexes from what plans depend on to the services that depend on it.

Source: OME "Runtime inheritance" and "Troubleshoot runtime selection" documents (v1.3): a runtime's
change concerns the services that name it or inherit from it; services whose runtime OME chose look
again when they themselves change. DESIGN's ruling: one that can't be served looks again when its model
or a runtime changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from ome.api import ClusterServingRuntime, InferenceService, ObjectRef
from ome.resolution.dependents import Dependents
from ome.resolution.revisions import in_use
from ome.snapshot import Snapshot

__all__ = ["Concerns"]

_Name = TypeVar("_Name", str, ObjectRef)


class Concerns:
    """The indexes. Kept up one service at a time, and one plan at a time."""

    def __init__(self) -> None:
        self._dependents = Dependents()
        self._pins: dict[ObjectRef, frozenset[str]] = {}
        self._pinned: dict[str, set[ObjectRef]] = {}
        self._reads: dict[ObjectRef, frozenset[ObjectRef]] = {}
        self._readers: dict[ObjectRef, set[ObjectRef]] = {}
        self._held: set[ObjectRef] = set()
        self._choosing: dict[str, set[ObjectRef]] = {}

    def put_service(self, service: InferenceService) -> None:
        """Take in a service, or what became of it."""
        self._dependents.put(service)
        self._pin(service.ref, in_use((service.raw,)))

    def keep_pins(self, ref: ObjectRef, raw: Mapping[str, Any]) -> None:
        """A service can't be read: the revisions that it seems to need stay in use until it is gone."""
        self._pin(ref, in_use((raw,)))

    def remove_service(self, ref: ObjectRef) -> None:
        """Forget a service."""
        self._dependents.remove(ref)
        self._pin(ref, frozenset())
        self._note(ref, frozenset())
        self._held.discard(ref)
        self._choose(ref, False)

    def planned(
        self, ref: ObjectRef, looked_up: Iterable[ObjectRef], *, held: bool, chooses: bool
    ) -> None:
        """A service was planned: the names that the plan asked for, whether something was held back, and
        whether OME chooses its runtime."""
        self._note(ref, frozenset(looked_up))
        if held:
            self._held.add(ref)
        else:
            self._held.discard(ref)
        self._choose(ref, held and chooses)

    def of_runtimes(
        self, runtimes: Iterable[ObjectRef], snapshot: Snapshot
    ) -> frozenset[ObjectRef]:
        """The services that changed runtimes concern: those that name or inherit from one, and those
        that wait for one to be chosen and can see it."""
        found = set(self._dependents.of(runtimes, snapshot))
        for ref in runtimes:
            if ref.kind == ClusterServingRuntime.KIND:
                for services in self._choosing.values():
                    found |= services
            else:
                found |= self._choosing.get(ref.namespace, set())
        return frozenset(found)

    def readers(self, ref: ObjectRef) -> frozenset[ObjectRef]:
        """The services whose last plan asked for this name."""
        return frozenset(self._readers.get(ref, ()))

    def held_readers(self, ref: ObjectRef) -> frozenset[ObjectRef]:
        """Those of them that can't be served as they ask."""
        return self.readers(ref) & self._held

    def pinned_to(self, revision: str) -> frozenset[ObjectRef]:
        """The services that name a revision or are pinned to it."""
        return frozenset(self._pinned.get(revision, ()))

    def pinned(self) -> frozenset[str]:
        """The revisions that some service names or is pinned to."""
        return frozenset(self._pinned)

    def _pin(self, ref: ObjectRef, names: frozenset[str]) -> None:
        _move(self._pinned, ref, self._pins.get(ref, frozenset()), names)
        self._pins[ref] = names
        if not names:
            del self._pins[ref]

    def _note(self, ref: ObjectRef, looked_up: frozenset[ObjectRef]) -> None:
        _move(self._readers, ref, self._reads.get(ref, frozenset()), looked_up)
        self._reads[ref] = looked_up
        if not looked_up:
            del self._reads[ref]

    def _choose(self, ref: ObjectRef, waits: bool) -> None:
        group = self._choosing.setdefault(ref.namespace, set())
        if waits:
            group.add(ref)
        else:
            group.discard(ref)
        if not group:
            del self._choosing[ref.namespace]


def _move(
    index: dict[_Name, set[ObjectRef]], ref: ObjectRef, old: frozenset[_Name], new: frozenset[_Name]
) -> None:
    """Let a service stand under its new names instead of its old ones."""
    for name in old - new:
        index[name].discard(ref)
        if not index[name]:
            del index[name]
    for name in new - old:
        index.setdefault(name, set()).add(ref)
