"""Labels and annotations of what a component renders.

Source: OME labels-and-annotations reference (v1.3).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ome.planning.context import ServiceContext
from ome.planning.names import label_value

__all__ = [
    "EXTERNAL",
    "RUNTIME_ANNOTATION",
    "SERVICE_LABEL",
    "component_annotations",
    "component_labels",
    "pod_annotations",
    "service_annotations",
]

Json = Mapping[str, Any]

RUNTIME_ANNOTATION: Final = "ome.io/serving-runtime"
SERVICE_LABEL: Final = "ome.io/inferenceservice"
# The value of the label `component` of the Service in front.
EXTERNAL: Final = "external-service"
_CATEGORY: Final = "models.ome.io/category"

# The service's own annotations that steer OME and never reach what it renders.
_CONTROL: Final = frozenset(
    {
        "kubectl.kubernetes.io/last-applied-configuration",
        "ome.io/rollout-promote",
        "ome.io/rollout-rollback",
        "ome.io/runtime-sync",
        "internal.ome.io/storage-initializer-sourceuri",
    }
)
# Those that steer what stands beside the pods: editing one must not restart them.
_BESIDE: Final = frozenset(
    {
        "ome.io/accelerator-class",
        "ome.io/applied-hash",
        "ome.io/autoscalerClass",
        "ome.io/deploymentMode",
        "ome.io/extra-endpoints",
        "ome.io/ingress-disable-creation",
        "ome.io/load-balancer-ip",
        "ome.io/metrics",
        "ome.io/service-type",
        "ome.io/targetUtilizationPercentage",
    }
)
_NOT_ON_SERVICE: Final = (
    "prometheus.io/",
    "k8s.grafana.com/",
    "loki.grafana.com/",
    "networking.gke.io/",
    "rdma.ome.io/",
    "runtime.ome.io/",
)
_INJECTION: Final = frozenset(
    {
        "ome.io/inject-model-init",
        "ome.io/inject-fine-tuned-adapter",
        "ome.io/inject-serving-sidecar",
    }
)


def component_labels(context: ServiceContext, name: str, merged: Json) -> dict[str, str]:
    """Labels of the workload, its Service, autoscaler and budget (the pods get `app` as well)."""
    labels = {**context.service.labels, **(merged.get("labels") or {})}
    labels.update(_queue_labels(context.service.annotations))
    labels.update(
        {
            SERVICE_LABEL: context.service.name,
            "component": name,
            "serving-runtime": label_value(context.resolution.runtime.name),
            "fine-tuned-serving": "false",
        }
    )
    model = context.resolution.model
    if model is not None:
        labels["base-model-name"] = label_value(model.name)
        labels["base-model-size"] = label_value(model.annotations.get(_CATEGORY) or "SMALL")
        labels["base-model-type"] = "Serving"
        if vendor := (context.model_spec or {}).get("vendor"):
            labels["base-model-vendor"] = label_value(vendor)
    return labels


def _queue_labels(annotations: Mapping[str, str]) -> dict[str, str]:
    if queue := annotations.get("ome.io/volcano-queue"):
        return {"volcano.sh/queue-name": label_value(queue)}
    cluster = label_value(annotations.get("ome.io/dedicated-ai-cluster") or "")
    if not cluster:
        return {}
    if "kueue-enabled" in annotations:
        return {
            "kueue.x-k8s.io/queue-name": cluster,
            "kueue.x-k8s.io/priority-class": "kueue-scheduling-high-priority",
        }
    return {"volcano.sh/queue-name": cluster}


def component_annotations(context: ServiceContext, merged: Json) -> dict[str, str]:
    """Annotations of the workload and its pods."""
    own = {key: value for key, value in context.service.annotations.items() if key not in _CONTROL}
    annotations = {**own, **(merged.get("annotations") or {})}
    annotations[RUNTIME_ANNOTATION] = context.resolution.runtime.name
    model = context.resolution.model
    if model is not None:
        spec = context.model_spec or {}
        model_format = spec.get("modelFormat") or {}
        facts = {
            "ome.io/base-model-name": model.name,
            "ome.io/base-model-format": model_format.get("name"),
            "ome.io/base-model-vendor": spec.get("vendor"),
            "ome.io/base-model-format-version": model_format.get("version"),
        }
        annotations.update({key: value for key, value in facts.items() if value})
    return annotations


def pod_annotations(annotations: Mapping[str, str], merged: Json) -> dict[str, str]:
    """What of a component's annotations its pods have: those that steer OME only where a runtime or the
    component's own spec sets them. Source: docs/compatibility.md, `ome.io/runtime-sync`."""
    own = merged.get("annotations") or {}
    return {key: value for key, value in annotations.items() if key in own or key not in _BESIDE}


def service_annotations(annotations: Mapping[str, str]) -> dict[str, str]:
    """What of a component's annotations its Service keeps."""
    return {
        key: value
        for key, value in annotations.items()
        if not key.startswith(_NOT_ON_SERVICE) and key not in _INJECTION
    }
