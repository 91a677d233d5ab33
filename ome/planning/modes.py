"""The deployment mode of a component. Source: OME deployment-modes document (v1.3)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ome.planning.context import ComponentRefused
from ome.scoring.verdict import MODE_ANNOTATION, declared_mode

__all__ = ["OMENATIVE", "RAW", "VIRTUAL", "component_mode"]

RAW: Final = "RawDeployment"
OMENATIVE: Final = "OMENative"
MULTI_NODE: Final = "MultiNode"
VIRTUAL: Final = "VirtualDeployment"


def component_mode(name: str, merged: Mapping[str, Any], spec_mode: str | None) -> str:
    """The mode of a merged component: its annotation, the service's mode, its shape, the default.

    Raises ComponentRefused for a mode that the component can't have.
    """
    mode = declared_mode(merged.get("annotations"))
    if mode == VIRTUAL or (mode == MULTI_NODE and name == "router"):
        raise ComponentRefused.because(
            "InvalidDeploymentMode",
            f"deployment mode {mode} is not valid for the {name}",
            path=f"spec.{name}.annotations[{MODE_ANNOTATION}]",
            fix=f"use {RAW} or {OMENATIVE}",
            reason="DeploymentModeError",
        )
    if mode or spec_mode:
        return mode or spec_mode or RAW
    is_multi_pod = name != "router" and ("leader" in merged or "worker" in merged)
    return OMENATIVE if is_multi_pod else RAW
