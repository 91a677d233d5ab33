"""The deployment mode of a component. Source: OME deployment-modes document (v1.3)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Final

from ome.planning.context import ComponentRefused
from ome.scoring.verdict import MODE_ANNOTATION, declared_mode

__all__ = ["OMENATIVE", "RAW", "VIRTUAL", "ModeSource", "component_mode", "mode_of"]

RAW: Final = "RawDeployment"
OMENATIVE: Final = "OMENative"
MULTI_NODE: Final = "MultiNode"
VIRTUAL: Final = "VirtualDeployment"


class ModeSource(StrEnum):
    """Where a component's mode comes from, in the order it is looked for."""

    SERVICE_ANNOTATION = "ServiceAnnotation"
    COMPONENT_ANNOTATION = "ComponentAnnotation"
    SERVICE_SPEC = "ServiceSpec"
    LEADER_WORKER_SHAPE = "LeaderWorkerShape"
    DEFAULT = "Default"


def mode_of(name: str, merged: Mapping[str, Any], spec_mode: str | None) -> tuple[str, ModeSource]:
    """The mode of a merged component and what says so: its annotation, the service's mode, its shape, or
    nothing. Doesn't judge whether the component can have it."""
    if mode := declared_mode(merged.get("annotations")):
        return mode, ModeSource.COMPONENT_ANNOTATION
    if spec_mode:
        return spec_mode, ModeSource.SERVICE_SPEC
    if name != "router" and ("leader" in merged or "worker" in merged):
        return OMENATIVE, ModeSource.LEADER_WORKER_SHAPE
    return RAW, ModeSource.DEFAULT


def component_mode(name: str, merged: Mapping[str, Any], spec_mode: str | None) -> str:
    """The mode of a merged component. Raises ComponentRefused for one that the component can't have."""
    mode, source = mode_of(name, merged, spec_mode)
    invalid = mode == VIRTUAL or (mode == MULTI_NODE and name == "router")
    if invalid and source is ModeSource.COMPONENT_ANNOTATION:
        raise ComponentRefused.because(
            "InvalidDeploymentMode",
            f"deployment mode {mode} is not valid for the {name}",
            path=f"spec.{name}.annotations[{MODE_ANNOTATION}]",
            fix=f"use {RAW} or {OMENATIVE}",
            reason="DeploymentModeError",
        )
    return mode
