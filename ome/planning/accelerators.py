"""The accelerator class of a component and what it changes.

Source: OME "Select accelerators" and accelerator-classes documents (v1.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ome.api import AcceleratorClass
from ome.planning.context import ComponentRefused, ServiceContext
from ome.scoring.entries import best_entry

__all__ = ["Accelerator", "pick_accelerator"]

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Accelerator:
    """The class that a component got: its name, what it asks of nodes and pods, and the runtime's
    settings for it (`overrides`, from the `supportedModelFormats` entry that serves the model)."""

    name: str
    node_selector: Mapping[str, str] = field(default_factory=dict)
    node_affinity: Json | None = None
    resources: Mapping[str, Any] = field(default_factory=dict)
    overrides: Json = field(default_factory=dict)


def pick_accelerator(context: ServiceContext, component: str) -> Accelerator | None:
    """The class of an engine or decoder, or None. Raises ComponentRefused when it is missing."""
    override = (context.declared(component) or {}).get("acceleratorOverride") or {}
    selector = context.spec.get("acceleratorSelector") or {}
    source = f"spec.{component}.acceleratorOverride" if override else "spec.acceleratorSelector"
    name = override.get("acceleratorClass") or selector.get("acceleratorClass")
    policy = override.get("policy") or selector.get("policy")
    listed = (context.runtime_spec.get("acceleratorRequirements") or {}).get("acceleratorClasses")
    wanted = name or policy
    if not wanted:
        return None
    if not listed:
        _warn_no_list(context, component, wanted, source)
        return None
    if not name:
        raise ComponentRefused.because(
            "AcceleratorPolicyUnsupported",
            f"policy {policy} isn't applied by this version of OME",
            path=f"{source}.policy",
            fix="name a class in acceleratorClass",
            reason="AcceleratorClassError",
        )
    found = context.snapshot.accelerator_class(name)
    if found is None:
        raise ComponentRefused.because(
            "AcceleratorClassNotFound",
            f"Failed to get accelerator class for {component}: "
            f"accelerator class {name} not found at cluster scope",
            path=f"{source}.acceleratorClass",
            reason="AcceleratorClassError",
        )
    return _describe(context, found)


def _warn_no_list(context: ServiceContext, component: str, wanted: str, source: str) -> None:
    context.warn(
        "AcceleratorClassNotAssigned",
        f"{wanted} isn't applied to the {component}: runtime {context.resolution.runtime.name} lists "
        "no accelerator classes",
        path=source,
        fix="list the class in the runtime's acceleratorRequirements.acceleratorClasses",
    )


def _describe(context: ServiceContext, found: AcceleratorClass) -> Accelerator:
    spec = found.raw.get("spec") or {}
    discovery = spec.get("discovery") or {}
    overrides: Json = {}
    if context.model_spec is not None:
        entry = best_entry(
            context.runtime_spec,
            context.model_spec,
            auto_selected=context.resolution.auto_selected,
        )
        overrides = ((entry or {}).get("acceleratorConfig") or {}).get(found.name) or {}
    return Accelerator(
        name=found.name,
        node_selector=discovery.get("nodeSelector") or {},
        node_affinity=(discovery.get("affinity") or {}).get("nodeAffinity"),
        resources={
            item["name"]: item.get("quantity", "1")
            for item in spec.get("resources") or ()
            if item.get("name")
        },
        overrides=overrides,
    )
