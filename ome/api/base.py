"""What every API type shares: strict fields, kept unknowns, metadata and identity.

An object is read many times and written never: models are frozen, keep what they do not know, and
hold on to the caller's own dict so that merging and revisions work on what the user wrote.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, ClassVar, Final, Self

import pydantic
from pydantic import ConfigDict, ModelWrapValidatorHandler, PrivateAttr
from pydantic.alias_generators import to_camel

from ome.api.directives import has_directives
from ome.api.problems import ObjectRef
from ome.api.scalars import DnsName, Int64, JsonObject, TextMap, Timestamp

__all__ = [
    "API_VERSION",
    "GROUP",
    "KEEPS_UNKNOWN",
    "VERSION",
    "ApiObject",
    "Defaulted",
    "Model",
    "ObjectMeta",
]

GROUP: Final = "ome.io"
VERSION: Final = "v1beta1"
API_VERSION: Final = f"{GROUP}/{VERSION}"
KEEPS_UNKNOWN: Final = ConfigDict(json_schema_extra={"x-kubernetes-preserve-unknown-fields": True})
"""Configuration of a type whose unknown fields the API server keeps, too."""


class Model(pydantic.BaseModel):
    """Base of all types: camelCase names in JSON, strict values, unknown fields kept."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        extra="allow",
        frozen=True,
        protected_namespaces=(),
        strict=True,
    )


class Defaulted(Model):
    """Base of types whose fields have API defaults, so that a null there counts as unset.

    The API server drops such a null and then sets the default (spec: api.md 1). The null itself is
    kept as an extra, so that `dump` gives it back.
    """

    @pydantic.model_validator(mode="wrap")
    @classmethod
    def _default_nulls(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        if not isinstance(value, dict) or None not in value.values():
            return handler(value)
        nulls = {
            field.alias: None
            for field in cls.model_fields.values()
            if not (field.is_required() or field.default is None)
            and value.get(field.alias, field) is None
        }
        read = handler({key: each for key, each in value.items() if key not in nulls})
        if read.__pydantic_extra__ is not None:
            read.__pydantic_extra__.update({str(key): None for key in nulls})
        return read


class ObjectMeta(Model):
    """The metadata that rules read; the rest is kept unread."""

    name: DnsName
    namespace: str | None = None
    uid: str | None = None
    generation: Int64 | None = None
    resource_version: str | None = None
    creation_timestamp: Timestamp | None = None
    deletion_timestamp: Timestamp | None = None
    labels: TextMap | None = None
    annotations: TextMap | None = None
    finalizers: list[str] | None = None
    owner_references: list[JsonObject] | None = None
    generate_name: str | None = None
    deletion_grace_period_seconds: Int64 | None = None
    managed_fields: list[JsonObject] | None = None
    self_link: str | None = None


class ApiObject(Model):
    """An object of `ome.io/v1beta1`; made by `ome.api.parse`, never by hand.

    Subclasses set `KIND`, `PLURAL` and `NAMESPACED` and declare `spec` and `status`
    (spec: api.md 2).
    """

    KIND: ClassVar[str]
    PLURAL: ClassVar[str]
    NAMESPACED: ClassVar[bool]

    api_version: str
    kind: str
    metadata: ObjectMeta

    _raw: dict[str, Any] = PrivateAttr(default_factory=dict)

    @property
    def raw(self) -> dict[str, Any]:
        """The dict that was parsed, by reference: read it, never change it."""
        return self._raw

    @cached_property
    def has_directives(self) -> bool:
        """Whether the object says with directives what it removes from lower layers."""
        return has_directives(self.raw)

    @property
    def name(self) -> str:
        """`metadata.name`."""
        return self.metadata.name

    @property
    def namespace(self) -> str:
        """`metadata.namespace`; empty for cluster scope, and where the object states none."""
        return (self.metadata.namespace or "") if self.NAMESPACED else ""

    @property
    def ref(self) -> ObjectRef:
        """Kind, namespace and name, as problems and indexes use it."""
        return ObjectRef(self.KIND, self.namespace, self.name)

    @property
    def uid(self) -> str:
        """`metadata.uid`; empty for an object that no API server has seen."""
        return self.metadata.uid or ""

    @property
    def generation(self) -> int:
        """`metadata.generation`; 0 for an object that no API server has seen."""
        return self.metadata.generation or 0

    @property
    def labels(self) -> dict[str, str]:
        """`metadata.labels`, or an empty dict."""
        return self.metadata.labels or {}

    @property
    def annotations(self) -> dict[str, str]:
        """`metadata.annotations`, or an empty dict."""
        return self.metadata.annotations or {}
