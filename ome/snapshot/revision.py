"""A stored revision of a runtime, read from its ControllerRevision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ome.merging.canonical import content_hash

__all__ = ["Revision", "read_revision"]


@dataclass(frozen=True)
class Revision:
    """What OME needs of a ControllerRevision; `created` is its RFC 3339 time ("" when unknown)."""

    name: str
    runtime: str
    kind: str
    namespace: str
    spec: Mapping[str, Any]
    created: str
    created_by: str
    annotations: Mapping[str, str]

    @cached_property
    def digest(self) -> str:
        """The content hash of its spec, whatever hash its name carries."""
        return content_hash(self.spec)


def read_revision(raw: Mapping[str, Any]) -> Revision | None:
    """The revision that a ControllerRevision holds; None when it is no runtime's."""
    metadata = raw.get("metadata")
    data = raw.get("data")
    if not isinstance(metadata, Mapping) or not isinstance(data, Mapping):
        return None
    labels = _texts(metadata.get("labels"))
    annotations = _texts(metadata.get("annotations"))
    name, runtime = metadata.get("name"), labels.get("ome.io/runtime-of")
    if not isinstance(name, str) or not runtime:
        return None
    created = metadata.get("creationTimestamp")
    return Revision(
        name=name,
        runtime=runtime,
        kind=labels.get("ome.io/runtime-of-kind", ""),
        namespace=labels.get("ome.io/runtime-of-namespace", ""),
        spec=data,
        created=created if isinstance(created, str) else "",
        created_by=annotations.get("ome.io/created-by", ""),
        annotations=annotations,
    )


def _texts(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        return {}
    return {key: text for key, text in value.items() if isinstance(text, str)}
