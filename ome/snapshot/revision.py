"""A stored revision of a runtime, read from its ControllerRevision."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ome.api import (
    API_VERSION,
    ApiObject,
    ClusterServingRuntime,
    InvalidObject,
    parse,
    unknown_fields,
)
from ome.api.directives import has_directives
from ome.merging.canonical import content_hash
from ome.merging.directives import settled
from ome.merging.schema import RUNTIME_SPEC

__all__ = ["Revision", "RevisionOf", "read_revision"]

RevisionOf = tuple[str, str, str]


@dataclass(frozen=True)
class Revision:
    """What OME needs of a ControllerRevision; `created` is its RFC 3339 time ("" when unknown).

    `runtime`, `kind`, `namespace` and `hash` are what its labels say ("" when they say nothing), `ordinal`
    its `revision`. `spec` is empty when `data` is no object, which `is_object` then denies.
    """

    name: str
    runtime: str
    kind: str
    namespace: str
    spec: Mapping[str, Any]
    created: str
    created_by: str
    annotations: Mapping[str, str]
    hash: str = ""
    ordinal: Any = 1
    uid: str = ""
    is_object: bool = True

    @property
    def of(self) -> RevisionOf:
        """The runtime that its labels name: kind, namespace and name."""
        return self.kind, self.namespace, self.runtime

    @cached_property
    def digest(self) -> str:
        """The content hash of its spec, whatever hash its name carries."""
        return content_hash(self.spec)

    @property
    def is_readable(self) -> bool:
        """Whether `data` is a runtime's spec."""
        return self._read is not None

    @property
    def is_usable(self) -> bool:
        """Whether a service can be served from it: a runtime's, and readable."""
        return bool(self.runtime) and self.is_readable

    @property
    def has_unknown_fields(self) -> bool:
        """Whether `data` has fields that a runtime's spec hasn't."""
        return self._read is not None and bool(unknown_fields(self._read))

    @cached_property
    def _read(self) -> ApiObject | None:
        """The spec as a runtime's; None when it is none."""
        if not self.is_object:
            return None
        raw = {
            "apiVersion": API_VERSION,
            "kind": ClusterServingRuntime.KIND,
            "metadata": {"name": "revision"},
            "spec": dict(self.spec),
        }
        try:
            return parse(raw)
        except InvalidObject:
            return None


def read_revision(raw: Mapping[str, Any]) -> Revision | None:
    """The revision that a ControllerRevision holds, whatever its `data`; None when it has no name."""
    metadata = raw.get("metadata")
    if not isinstance(metadata, Mapping) or not isinstance(metadata.get("name"), str):
        return None
    data = raw.get("data")
    labels = _texts(metadata.get("labels"))
    annotations = _texts(metadata.get("annotations"))
    return Revision(
        name=metadata["name"],
        runtime=labels.get("ome.io/runtime-of", ""),
        kind=labels.get("ome.io/runtime-of-kind", ""),
        namespace=labels.get("ome.io/runtime-of-namespace", ""),
        spec=_spec(data),
        created=_text(metadata.get("creationTimestamp")),
        created_by=annotations.get("ome.io/created-by", ""),
        annotations=annotations,
        hash=labels.get("ome.io/revision-hash", ""),
        ordinal=raw.get("revision"),
        uid=_text(metadata.get("uid")),
        is_object=isinstance(data, Mapping),
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: Any) -> dict[str, str]:
    if not isinstance(value, Mapping):
        return {}
    return {key: text for key, text in value.items() if isinstance(text, str)}


def _spec(data: Any) -> Mapping[str, Any]:
    """What a revision serves. OME writes none with directives; in others they find nothing."""
    if not isinstance(data, Mapping):
        return {}
    return settled(data, RUNTIME_SPEC) if has_directives(data) else data
