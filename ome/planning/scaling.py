"""Replica bounds, autoscalers and disruption budgets.

Source: OME component-autoscaling, set-replica-defaults and disruption-budget documents (v1.3).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ome.planning.context import ComponentRefused, ServiceContext

__all__ = ["Scaling", "autoscaler_object", "budget_policy", "component_scaling"]

Json = Mapping[str, Any]

_CLASSES: Final = ("HPA", "KEDA", "External", "None")
_CLASS_ANNOTATION: Final = "ome.io/autoscalerClass"
_TARGET_ANNOTATION: Final = "ome.io/targetUtilizationPercentage"
_LEGACY: Final = {"hpa": "HPA", "external": "External", "keda": "KEDA"}
_DEFAULT_TARGET: Final = 80
_KEDA_FIELDS: Final = (
    "pollingInterval",
    "cooldownPeriod",
    "idleReplicaCount",
    "fallback",
    "advanced",
    "triggers",
)
_SCALED_OBJECT_ROOM: Final = 50
_PERCENT: Final = re.compile(r"(100|[1-9]?[0-9])%")


@dataclass(frozen=True, slots=True)
class Scaling:
    """How a component scales: its bounds, and the autoscaler block that counts."""

    least: int | None
    most: int | None
    block: Json

    @property
    def kind(self) -> str:
        """HPA, KEDA, External or None."""
        return str(self.block["class"])

    @property
    def fixed_replicas(self) -> int | None:
        """The workload's replica count, when no autoscaler owns it and a count is set."""
        return self.least if self.kind == "None" and self.least else None


def component_scaling(context: ServiceContext, name: str, merged: Json) -> Scaling:
    """Bounds and autoscaler of a merged component. Raises ComponentRefused."""
    config = context.snapshot.config
    least = merged.get("minReplicas")
    if least is None:
        least = config.min_replicas
    most = merged.get("maxReplicas") or None
    if most is None and (default := config.max_replicas.get(name)) is not None:
        most = max(default, least or 0)
    block = _autoscaler_block(context, name, merged)
    _check_bounds(name, least, most, block)
    return Scaling(least, most, block)


def _autoscaler_block(context: ServiceContext, name: str, merged: Json) -> Json:
    """The merged block, else what the legacy annotations say, else an HPA."""
    path = f"spec.{name}.autoscaler"
    if policy := (context.declared(name) or {}).get("autoscalerPolicyRef"):
        text = (
            f"AutoscalerPolicyFeatureDisabled: spec.{name}.autoscalerPolicyRef references "
            f'"{policy.get("name", "")}" but the AutoscalerPolicy feature is not enabled on this '
            "cluster; remove the ref or enable the feature"
        )
        at = f"spec.{name}.autoscalerPolicyRef"
        raise ComponentRefused.because("AutoscalerPolicyFeatureDisabled", text, path=at)
    block: Json = merged.get("autoscaler") or {}
    if not block:
        return _legacy_block(context.service.annotations)
    kind = block.get("class")
    if kind not in _CLASSES:
        text = (
            f'{name}: AutoscalerClassUnknown: autoscaler.class "{kind or ""}" is not one of '
            f"{'|'.join(_CLASSES)}"
        )
        raise ComponentRefused.because("AutoscalerClassUnknown", text, path=f"{path}.class")
    if kind == "KEDA" and not (block.get("keda") or {}).get("triggers"):
        raise _no_trigger(f"{path}.keda.triggers")
    return block


def _no_trigger(path: str) -> ComponentRefused:
    text = "KEDA autoscaler requires at least one trigger"
    return ComponentRefused.because("KedaTriggersRequired", text, path=path)


def _legacy_block(annotations: Mapping[str, str]) -> Json:
    legacy = annotations.get(_CLASS_ANNOTATION)
    if legacy is not None and legacy not in _LEGACY:
        text = f"[{legacy}] is not a supported autoscaler class type"
        path = f"metadata.annotations[{_CLASS_ANNOTATION}]"
        raise ComponentRefused.because("UnsupportedAutoscalerClass", text, path=path)
    if legacy == "keda":
        raise _no_trigger(f"metadata.annotations[{_CLASS_ANNOTATION}]")
    if legacy == "external":
        return {"class": "External"}
    target = annotations.get(_TARGET_ANNOTATION)
    if target is None:
        return {"class": "HPA"}
    if not re.fullmatch(r"[1-9][0-9]?|100", target, re.ASCII):
        text = "the target utilization percentage should be a [1-100] integer"
        path = f"metadata.annotations[{_TARGET_ANNOTATION}]"
        raise ComponentRefused.because("TargetUtilization", text, path=path)
    return {"class": "HPA", "hpa": {"metrics": [_cpu_metric(int(target))]}}


def _cpu_metric(target: int) -> dict[str, Any]:
    return {
        "type": "Resource",
        "resource": {
            "name": "cpu",
            "target": {"type": "Utilization", "averageUtilization": target},
        },
    }


def _check_bounds(name: str, least: int | None, most: int | None, block: Json) -> None:
    path = f"spec.{name}.minReplicas"
    if least is not None and least < 0:
        raise ComponentRefused.because("MinReplicas", f"{path} must be >= 0", path=path)
    if most is not None and most < 1:
        at = f"spec.{name}.maxReplicas"
        raise ComponentRefused.because("MaxReplicas", f"{at} must be >= 1", path=at)
    if least == 0 and block["class"] == "HPA":
        text = (
            f"InvalidScaleToZero: {name}.minReplicas=0 requires KEDA autoscaling (set "
            f"spec.{name}.autoscaler.class=KEDA or the ome.io/autoscalerClass=keda annotation); "
            "Serverless mode no longer auto-promotes scale-to-zero"
        )
        raise ComponentRefused.because("InvalidScaleToZero", text, path=path)
    if least is not None and most is not None and least > most:
        text = f"minReplicas must not exceed maxReplicas: {least} > {most}"
        raise ComponentRefused.because("ReplicaBounds", text, path=path)


def autoscaler_object(
    scaling: Scaling, metadata: dict[str, Any], workload: str
) -> dict[str, Any] | None:
    """The HPA or ScaledObject of a Deployment; None when nothing scales it or somebody else does.

    `metadata` is the autoscaler's own; a ScaledObject gets its prefixed name.
    """
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": workload}
    if scaling.kind == "HPA":
        return _hpa(scaling, metadata, target)
    if scaling.kind == "KEDA":
        return _scaled_object(scaling, metadata, target)
    return None


def _hpa(scaling: Scaling, metadata: dict[str, Any], target: Json) -> dict[str, Any]:
    hpa = scaling.block.get("hpa") or {}
    least = scaling.least or 1
    spec = {
        "scaleTargetRef": target,
        "minReplicas": least,
        "maxReplicas": scaling.most or least,
        "metrics": hpa.get("metrics") or [_cpu_metric(_DEFAULT_TARGET)],
    }
    if behavior := hpa.get("behavior"):
        spec["behavior"] = behavior
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": metadata,
        "spec": spec,
    }


def _scaled_object(scaling: Scaling, metadata: dict[str, Any], target: Json) -> dict[str, Any]:
    keda = scaling.block.get("keda") or {}
    spec: dict[str, Any] = {"scaleTargetRef": target}
    if scaling.least is not None:
        spec["minReplicaCount"] = scaling.least
    if scaling.most is not None:
        spec["maxReplicaCount"] = scaling.most
    spec.update({name: keda[name] for name in _KEDA_FIELDS if keda.get(name) is not None})
    name = f"scaledobject-{metadata['name'][-_SCALED_OBJECT_ROOM:].lstrip('-.')}"
    return {
        "apiVersion": "keda.sh/v1alpha1",
        "kind": "ScaledObject",
        "metadata": {**metadata, "name": name},
        "spec": spec,
    }


def budget_policy(context: ServiceContext, name: str, merged: Json) -> dict[str, Any] | None:
    """The one bound of a component's disruption budget: its own, else the configured one, else none.

    Raises ComponentRefused when runtime and service together set both bounds, or one is no bound.
    """
    own = {
        key: merged[key]
        for key in ("minAvailable", "maxUnavailable")
        if merged.get(key) not in (None, "")
    }
    if len(own) > 1:
        raise ComponentRefused.because(
            "PdbBoth",
            "exactly one of minAvailable or maxUnavailable must be set",
            path=f"spec.{name}",
            fix=f"the merged {name} has minAvailable and maxUnavailable: use the runtime's kind of bound",
        )
    for key, value in own.items():
        if not _is_bound(value):
            path = f"spec.{name}.{key}"
            text = f"{path} must be a non-negative integer or a percentage from 0% to 100%"
            raise ComponentRefused.because("PdbValue", text, path=path)
    policy = own or context.snapshot.config.raw_pdb
    return dict(policy) if policy else None


def _is_bound(value: Any) -> bool:
    if isinstance(value, bool):
        return False
    if isinstance(value, int):
        return value >= 0
    return isinstance(value, str) and bool(_PERCENT.fullmatch(value) or value.isdecimal())
