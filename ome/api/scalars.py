"""Scalar types of the API with their ranges, patterns and list kinds.

One place says what an integer, a quantity or a merged list is, for parsing and for the CRD alike,
so that the two cannot disagree.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeAlias

from pydantic import AfterValidator, Field, GetJsonSchemaHandler, PlainValidator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError

from ome.api.quantities import QUANTITY_PATTERN

__all__ = [
    "AtomicStrings",
    "AtomicText",
    "DnsName",
    "Int",
    "Int32",
    "Int64",
    "IntOrString",
    "JsonObject",
    "NaturalInt32",
    "NaturalInt64",
    "PositiveInt32",
    "Quantity",
    "ResourceQuantity",
    "Schema",
    "TextMap",
    "Timestamp",
    "name_faults",
]

_is_quantity = re.compile(QUANTITY_PATTERN.removesuffix("$") + r"\Z").match

INT_OR_STRING: Final[dict[str, Any]] = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
}
QUANTITY: Final[dict[str, Any]] = {**INT_OR_STRING, "pattern": QUANTITY_PATTERN}


@dataclass(frozen=True, slots=True, eq=False)
class Schema:
    """Annotation: the field's CRD schema, instead of the one its Python type would give."""

    schema: dict[str, Any]

    def __get_pydantic_json_schema__(
        self, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return dict(self.schema)


_label = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_is_dns_name = re.compile(rf"{_label}(\.{_label})*\Z").match


def _kind_of(value: object) -> str:
    if isinstance(value, bool):
        return "boolean"
    return {int: "integer", float: "number", str: "string"}.get(type(value), "other")


def check_int_or_string(value: object) -> object:
    if _kind_of(value) not in ("integer", "string"):
        raise PydanticCustomError("int_or_string", "must be an integer or a string")
    return value


def check_quantity(value: object) -> object:
    kind = _kind_of(value)
    if kind == "integer" or (kind == "string" and _is_quantity(str(value))):
        return value
    if kind == "string":
        raise PydanticCustomError("quantity", "is not a quantity")
    raise PydanticCustomError("int_or_string", "must be an integer or a string")


def name_faults(value: str) -> list[str]:
    """What Kubernetes has against a name (a DNS subdomain), in its words; nothing when it is valid."""
    faults = []
    if len(value) > 253:
        faults.append("must be no more than 253 characters")
    if not _is_dns_name(value):
        faults.append(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
            "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
            rf"for validation is '{_label}(\.{_label})*')"
        )
    return faults


def _check_dns_name(value: str) -> str:
    if name_faults(value):
        raise PydanticCustomError("dns_name", "is not a valid name")
    return value


def check_resource_quantity(value: object) -> object:
    return value if _kind_of(value) == "number" else check_quantity(value)


Int: TypeAlias = int
Int32: TypeAlias = Annotated[
    int, Field(ge=-(2**31), le=2**31 - 1), Schema({"type": "integer", "format": "int32"})
]
Int64: TypeAlias = Annotated[
    int, Field(ge=-(2**63), le=2**63 - 1), Schema({"type": "integer", "format": "int64"})
]
NaturalInt32: TypeAlias = Annotated[
    int,
    Field(ge=0, le=2**31 - 1),
    Schema({"type": "integer", "format": "int32", "minimum": 0}),
]
NaturalInt64: TypeAlias = Annotated[
    int,
    Field(ge=0, le=2**63 - 1),
    Schema({"type": "integer", "format": "int64", "minimum": 0}),
]
PositiveInt32: TypeAlias = Annotated[
    int,
    Field(ge=1, le=2**31 - 1),
    Schema({"type": "integer", "format": "int32", "minimum": 1}),
]
Timestamp: TypeAlias = Annotated[str, Schema({"type": "string", "format": "date-time"})]
IntOrString: TypeAlias = Annotated[
    int | str, PlainValidator(check_int_or_string), Schema(INT_OR_STRING)
]
Quantity: TypeAlias = Annotated[int | str, PlainValidator(check_quantity), Schema(QUANTITY)]
"""A quantity in a custom resource: an integer or a string of pattern P1 (spec: api.md 1)."""
ResourceQuantity: TypeAlias = Annotated[
    int | float | str, PlainValidator(check_resource_quantity), Schema(QUANTITY)
]
"""A quantity in a container's resources; a YAML float such as `0.5` is read as well."""
DnsName: TypeAlias = Annotated[str, AfterValidator(_check_dns_name)]
TextMap: TypeAlias = dict[str, str]
AtomicText: TypeAlias = Annotated[
    dict[str, str], Field(json_schema_extra={"x-kubernetes-map-type": "atomic"})
]
AtomicStrings: TypeAlias = Annotated[
    list[str], Field(json_schema_extra={"x-kubernetes-list-type": "atomic"})
]
JsonObject: TypeAlias = Annotated[
    dict[str, Any],
    Schema({"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
]
"""Any JSON object; its own fields are not ours to check."""
