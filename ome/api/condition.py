"""Conditions in a status: Kubernetes' own and Knative's.

A reader must cope with whatever a status holds, another version's included: the models require
nothing, while the CRD requires what a writer has to set.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, TypeAlias

from pydantic import ConfigDict, Field

from ome.api.base import Model
from ome.api.scalars import Int64, Schema, Timestamp

__all__ = ["AtomicConditions", "Condition", "Conditions", "KnativeCondition"]

_CONDITION: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["lastTransitionTime", "message", "reason", "status", "type"],
    "properties": {
        "lastTransitionTime": {"type": "string", "format": "date-time"},
        "message": {"type": "string", "maxLength": 32768},
        "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
        "reason": {
            "type": "string",
            "minLength": 1,
            "maxLength": 1024,
            "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        },
        "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
        "type": {
            "type": "string",
            "maxLength": 316,
            "pattern": (
                r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
                r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
            ),
        },
    },
}


class Condition(Model):
    """A condition of the Kubernetes kind (spec: api.md 6.6)."""

    type: str | None = None
    status: str | None = None
    reason: str | None = None
    message: str | None = None
    last_transition_time: Timestamp | None = None
    observed_generation: Int64 | None = None


class KnativeCondition(Model):
    """A condition of an InferenceService: plain strings, with a severity (spec: api.md 5.4)."""

    model_config = ConfigDict(json_schema_extra={"required": ["status", "type"]})

    type: str | None = None
    status: str | None = None
    severity: str | None = None
    last_transition_time: str | None = None
    reason: str | None = None
    message: str | None = None


_Item: TypeAlias = Annotated[Condition, Schema(_CONDITION)]
Conditions: TypeAlias = Annotated[
    list[_Item],
    Field(
        json_schema_extra={
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
        }
    ),
]
AtomicConditions: TypeAlias = Annotated[
    list[_Item], Field(json_schema_extra={"x-kubernetes-list-type": "atomic"})
]
