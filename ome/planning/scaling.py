"""Replica bounds, autoscalers and disruption budgets.

Source: OME component-autoscaling, set-replica-defaults and disruption-budget documents (v1.3).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from ome.planning.context import ComponentRefused, ServiceContext
from ome.snapshot.config import is_bound

__all__ = [
    "LEGACY_ANNOTATIONS",
    "Scaling",
    "autoscaler_object",
    "budget_policy",
    "component_scaling",
]

Json = Mapping[str, Any]

_CLASSES: Final = ("HPA", "KEDA", "External", "None")
_CLASS_ANNOTATION: Final = "ome.io/autoscalerClass"
_TARGET_ANNOTATION: Final = "ome.io/targetUtilizationPercentage"
LEGACY_ANNOTATIONS: Final = frozenset({_CLASS_ANNOTATION, _TARGET_ANNOTATION})
_LEGACY: Final = {"hpa": "HPA", "external": "External", "keda": "KEDA"}
_DEFAULT_TARGET: Final = 80
_METRIC_BODIES: Final = {
    "Resource": "resource",
    "ContainerResource": "containerResource",
    "Pods": "pods",
    "Object": "object",
    "External": "external",
}
_KEDA_FIELDS: Final = (
    "pollingInterval",
    "cooldownPeriod",
    "idleReplicaCount",
    "fallback",
    "advanced",
    "triggers",
)
_SCALED_OBJECT_ROOM: Final = 50


@dataclass(frozen=True, slots=True)
class Scaling:
    """How a component scales: its bounds, the autoscaler block that counts, and where that comes from."""

    least: int | None
    most: int | None
    block: Json
    source: str

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
    own = (context.declared(name) or {}).get("autoscaler") or {}
    scales_to_zero = own.get("class") == "KEDA" and bool((own.get("keda") or {}).get("triggers"))
    _check_bounds(name, least, most, block, scales_to_zero=scales_to_zero)
    return Scaling(least, most, block, _source(context, own, merged))


def _source(context: ServiceContext, own: Json, merged: Json) -> str:
    """Where a block comes from, in the words of status."""
    if own:
        return "isvc"
    if merged.get("autoscaler"):
        return "runtime"
    return "legacy" if LEGACY_ANNOTATIONS & context.service.annotations.keys() else "default"


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
    if context.config(name).get("autoscalerPolicyRef"):
        text = (
            f"{name}Config: autoscalerPolicyRef is not supported on serving runtimes; policy refs attach "
            "on the InferenceService only"
        )
        runtime = context.resolution.runtime.ref
        fix = f"remove it from {runtime}"
        raise ComponentRefused.because("RuntimePolicyRef", text, path="spec.runtime.name", fix=fix)
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
    _check_metrics(name, block, path)
    return block


def _check_metrics(name: str, block: Json, path: str) -> None:
    """Every HPA metric has a type, and the body of that type."""
    metrics = (block.get("hpa") or {}).get("metrics") or () if block["class"] == "HPA" else ()
    for at, metric in enumerate(metrics):
        body = _METRIC_BODIES.get(metric.get("type"))
        if body is None or not isinstance(metric.get(body), dict):
            known = ", ".join(_METRIC_BODIES)
            wants = f"{body} is missing" if body else f"type must be one of {known}"
            raise ComponentRefused.because(
                "HPAMetricMalformed",
                f"{name}: HPAMetricMalformed: hpa.metrics[{at}]: {wants}",
                path=f"{path}.hpa.metrics[{at}]",
                fix="write a MetricSpec of autoscaling/v2",
            )


def _no_trigger(path: str) -> ComponentRefused:
    text = "KEDA autoscaler requires at least one trigger"
    return ComponentRefused.because("KedaTriggersRequired", text, path=path, fix="add a trigger")


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


_MOST_REPLICAS: Final = 2**31 - 1


def _check_bounds(
    name: str, least: int | None, most: int | None, block: Json, *, scales_to_zero: bool
) -> None:
    path = f"spec.{name}.minReplicas"
    for field, count in (("minReplicas", least), ("maxReplicas", most)):
        if count is not None and count > _MOST_REPLICAS:
            at = f"spec.{name}.{field}"
            text = f"{at} must be at most {_MOST_REPLICAS}: Kubernetes counts replicas in 32 bits"
            raise ComponentRefused.because("ReplicasTooMany", text, path=at)
    if least is not None and least < 0:
        raise ComponentRefused.because("MinReplicas", f"{path} must be >= 0", path=path)
    if most is not None and most < 1:
        at = f"spec.{name}.maxReplicas"
        raise ComponentRefused.because("MaxReplicas", f"{at} must be >= 1", path=at)
    if least == 0 and not scales_to_zero:
        text = (
            f"InvalidScaleToZero: {name}.minReplicas=0 requires KEDA autoscaling (set "
            f"spec.{name}.autoscaler.class=KEDA or the ome.io/autoscalerClass=keda annotation); "
            "Serverless mode no longer auto-promotes scale-to-zero"
        )
        fix = "set a KEDA autoscaler with triggers in the service"
        raise ComponentRefused.because("InvalidScaleToZero", text, path=path, fix=fix)
    idle = (block.get("keda") or {}).get("idleReplicaCount")
    if block["class"] == "KEDA" and idle is not None and idle >= (least or 0):
        text = (
            f"{name}: KedaIdleBelowMin: keda.idleReplicaCount must be < minReplicas "
            f"(got idleReplicaCount={idle}, minReplicas={least or 0})"
        )
        at = f"spec.{name}.autoscaler.keda.idleReplicaCount"
        raise ComponentRefused.because("KedaIdleBelowMin", text, path=at, fix="raise minReplicas")
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
        if not is_bound(value):
            path = f"spec.{name}.{key}"
            text = f"{path} must be a non-negative integer or a percentage from 0% to 100%"
            raise ComponentRefused.because("PdbValue", text, path=path)
    policy = own or context.snapshot.config.raw_pdb
    return dict(policy) if policy else None
