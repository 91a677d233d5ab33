"""The accelerator class of a component and what it changes.

Source: OME "Select accelerators" and accelerator-classes documents (v1.3).
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ome.api import AcceleratorClass
from ome.planning.context import ComponentRefused, ServiceContext
from ome.scoring.accelerators import choose_class, failed_constraint
from ome.scoring.entries import best_entry

__all__ = ["Accelerator", "pick_accelerator"]

Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Accelerator:
    """The class that a component got: its name, what it asks of nodes and pods, and the runtime's
    settings for it (`overrides`, from the `supportedModelFormats` entry that serves the model). `memory` is
    the quantity that one of its accelerators has, None when the class doesn't say."""

    name: str
    node_selector: Mapping[str, str] = field(default_factory=dict)
    node_affinity: Json | None = None
    resources: Mapping[str, Any] = field(default_factory=dict)
    overrides: Json = field(default_factory=dict)
    memory: object = None


def pick_accelerator(context: ServiceContext, component: str) -> Accelerator | None:
    """The class of an engine or decoder, or None. Raises ComponentRefused when it is missing."""
    override = (context.declared(component) or {}).get("acceleratorOverride") or {}
    selector = context.spec.get("acceleratorSelector") or {}
    name = override.get("acceleratorClass") or selector.get("acceleratorClass")
    policy = override.get("policy") or selector.get("policy")
    listed = (context.runtime_spec.get("acceleratorRequirements") or {}).get("acceleratorClasses")
    wanted = name or policy
    is_own = wanted in (override.get("acceleratorClass"), override.get("policy"))
    source = f"spec.{component}.acceleratorOverride" if is_own else "spec.acceleratorSelector"
    if not wanted:
        return None
    if not listed:
        _warn_no_list(context, component, wanted, source)
        return None
    if not name:
        name = _by_policy(context, component, wanted, listed, source)
        if name is None:
            return None
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


def _by_policy(
    context: ServiceContext, component: str, policy: str, listed: list[str], source: str
) -> str | None:
    """The class that the policy picks from the runtime's list; None, with a warning, for none."""
    found = [
        (name, item.raw.get("spec") or {})
        for name in dict.fromkeys(listed)
        if (item := context.snapshot.accelerator_class(name)) is not None
    ]
    # Only the service-wide constraints count: those of an override are ignored, as documented.
    constraints = (context.spec.get("acceleratorSelector") or {}).get("constraints") or {}
    chosen = choose_class(policy, found, constraints)
    if chosen is None:
        context.warn(
            "AcceleratorClassNotAssigned",
            f"policy {policy} leaves no accelerator class for the {component}: "
            f"{_why_none(found, listed, constraints)}",
            path=f"{source}.policy",
            fix="relax the constraints, or list another class in the runtime",
        )
    return chosen


def _why_none(found: list[tuple[str, Json]], listed: list[str], constraints: Json) -> str:
    existing = dict(found)
    parts = []
    for name in dict.fromkeys(listed):
        if name not in existing:
            parts.append(f"{name} doesn't exist")
        elif failed := failed_constraint(name, existing[name], constraints):
            parts.append(f"{name} fails {failed}")
        else:
            parts.append(f"{name} has no cost")
    return ", ".join(parts)


def _warn_no_list(context: ServiceContext, component: str, wanted: str, source: str) -> None:
    context.warn(
        "AcceleratorClassNotAssigned",
        f"{wanted} isn't applied to the {component}: runtime {context.resolution.runtime.name} lists "
        "no accelerator classes",
        path=source,
        fix="list the class in the runtime's acceleratorRequirements.acceleratorClasses",
    )


def _warn_misspelt(context: ServiceContext, name: str, settings: Json) -> None:
    """A key that differs from the class's name by its case or a letter or two has no effect."""
    near = [] if name in settings else difflib.get_close_matches(name, settings, 1, 0.85)
    near = near or [key for key in settings if key != name and key.lower() == name.lower()]
    if near and name not in settings:
        context.warn(
            "AcceleratorConfigMisspelt",
            f'acceleratorConfig of runtime {context.resolution.runtime.name} has no key "{name}": the '
            f'settings under "{near[0]}" are not applied',
            path="spec.runtime.name",
            fix=f'spell the key "{name}"',
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
        settings = (entry or {}).get("acceleratorConfig") or {}
        overrides = settings.get(found.name) or {}
        _warn_misspelt(context, found.name, settings)
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
        memory=(spec.get("capabilities") or {}).get("memoryGB"),
    )
