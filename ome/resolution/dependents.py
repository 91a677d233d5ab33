"""Which services a change of a runtime concerns: those that name it or a runtime that inherits from it.

Source: OME "Runtime inheritance" document (v1.3), "When a parent changes". A service whose runtime was
chosen, not named, is rendered from that runtime's own spec; when it looks again isn't decided here.
"""

from __future__ import annotations

from collections.abc import Iterable

from ome.api import InferenceService, ObjectRef
from ome.resolution.pinning import runtime_kind
from ome.resolution.resolve import lookup_order
from ome.snapshot import Snapshot

__all__ = ["Dependents"]


class Dependents:
    """Services by the runtime that they name. Kept up one service at a time."""

    def __init__(self, services: Iterable[InferenceService] = ()) -> None:
        self._named: dict[ObjectRef, tuple[str, str]] = {}
        self._by_name: dict[str, set[ObjectRef]] = {}
        for service in services:
            self.put(service)

    def put(self, service: InferenceService) -> None:
        """Take in a service, or what became of it."""
        self.remove(service.ref)
        if named := _named(service):
            self._named[service.ref] = named
            self._by_name.setdefault(named[0], set()).add(service.ref)

    def remove(self, ref: ObjectRef) -> None:
        """Forget a service."""
        if (named := self._named.pop(ref, None)) is not None:
            self._by_name[named[0]].discard(ref)
            if not self._by_name[named[0]]:
                del self._by_name[named[0]]

    def of(self, runtimes: Iterable[ObjectRef], snapshot: Snapshot) -> frozenset[ObjectRef]:
        """The services that a change of these runtimes concerns.

        `runtimes` is what `Lineage.put` or `Lineage.remove` returned, `snapshot` what is true now.
        A runtime that is gone concerns the services that it would serve if it were there.
        """
        return frozenset(
            service
            for runtime in runtimes
            for service in self._by_name.get(runtime.name, ())
            if self._takes(service, runtime, snapshot)
        )

    def _takes(self, service: ObjectRef, runtime: ObjectRef, snapshot: Snapshot) -> bool:
        """Whether a service that names `runtime.name` gets this one, nothing of that name before it."""
        for each in lookup_order(service.namespace, *self._named[service]):
            if each == runtime:
                return True
            if snapshot.runtime_of(each) is not None:
                return False
        return False


def _named(service: InferenceService) -> tuple[str, str] | None:
    """The name and the kind of the runtime that a service names, or None."""
    reference = (service.raw.get("spec") or {}).get("runtime")
    if not isinstance(reference, dict) or not isinstance(name := reference.get("name"), str):
        return None
    return (name, runtime_kind(reference)) if name else None
