"""The pods of services, as far as status tells of them. Of foreign pods nothing is watched."""

from __future__ import annotations

from typing import Any

from ome.api import ObjectRef
from ome.planning.live import PodFacts, read_pod
from ome.planning.metadata import SERVICE_LABEL

__all__ = ["Pods"]


class Pods:
    """What is known of pods, by namespace and service."""

    def __init__(self) -> None:
        self._of: dict[tuple[str, str], dict[str, PodFacts]] = {}
        self._service: dict[ObjectRef, str] = {}

    def __len__(self) -> int:
        return len(self._service)

    def of(self, namespace: str, service: str) -> tuple[PodFacts, ...]:
        """The pods of a service, by name."""
        found = self._of.get((namespace, service), {})
        return tuple(found[name] for name in sorted(found))

    def known(self) -> list[ObjectRef]:
        """Every pod."""
        return list(self._service)

    def put(self, raw: dict[str, Any]) -> tuple[str, ...]:
        """Take in a pod. Returns the names of the services for which something has changed."""
        metadata = raw["metadata"]
        ref = ObjectRef("Pod", metadata["namespace"], metadata["name"])
        service: str = (metadata.get("labels") or {}).get(SERVICE_LABEL, "")
        facts = read_pod(raw)
        if facts is None or not service:
            gone = self.remove(ref)
            return (gone,) if gone else ()
        before = self.remove(ref) if self._service.get(ref, service) != service else ""
        pods = self._of.setdefault((ref.namespace, service), {})
        if pods.get(ref.name) == facts:
            return ()
        pods[ref.name] = facts
        self._service[ref] = service
        return (service, before) if before else (service,)

    def remove(self, ref: ObjectRef) -> str:
        """Forget a pod. Returns its service's name, "" for one that wasn't known."""
        service = self._service.pop(ref, "")
        if service:
            pods = self._of[ref.namespace, service]
            pods.pop(ref.name, None)
            if not pods:
                del self._of[ref.namespace, service]
        return service
