"""The plain objects of a RawDeployment component: one builder per kind.

Source: OME deployment-modes, ingress and labels-and-annotations documents (v1.3).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ome.planning.component import Component
from ome.planning.context import ServiceContext
from ome.planning.metadata import (
    EXTERNAL,
    SERVICE_LABEL,
    pod_annotations,
    service_annotations,
)

__all__ = [
    "deployment",
    "external_service",
    "pod_disruption_budget",
    "pod_monitor",
    "router_access",
    "service",
]

Json = dict[str, Any]

_SERVICE_TYPE: Final = "ome.io/service-type"
_LOAD_BALANCER_IP: Final = "ome.io/load-balancer-ip"
_EXTRA_ENDPOINTS: Final = "prometheus.ome.io/extra-endpoints"
_SERVICE_TYPES: Final = frozenset({"ClusterIP", "NodePort", "LoadBalancer"})
_EXTERNAL_ANNOTATIONS: Final = (
    "service.beta.kubernetes.io/",
    "cloud.google.com/",
    "service.kubernetes.io/",
)
_DEFAULT_PORT: Final = 8080
_ROLLING: Final = {"maxUnavailable": 0, "maxSurge": 1}


def metadata(
    context: ServiceContext,
    name: str,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Json:
    """Object metadata in the service's namespace, owned by the service where that exists."""
    data: Json = {"name": name, "namespace": context.service.namespace}
    if labels:
        data["labels"] = dict(sorted(labels.items()))
    if annotations:
        data["annotations"] = dict(sorted(annotations.items()))
    if context.owners:
        data["ownerReferences"] = context.owners
    return data


def deployment(context: ServiceContext, part: Component) -> Json:
    """The workload. `replicas` stands there only when no autoscaler owns the count."""
    selector = {"app": part.object_name}
    template = {
        "metadata": {
            "labels": dict(sorted({**part.labels, **selector}.items())),
            "annotations": dict(sorted(pod_annotations(part.annotations, part.settings).items())),
        },
        "spec": part.pod,
    }
    spec: Json = {
        "selector": {"matchLabels": selector},
        "strategy": _strategy(part.settings.get("deploymentStrategy")),
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
        "template": template,
    }
    if part.fixed_replicas is not None:
        spec = {"replicas": part.fixed_replicas, **spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(context, part.object_name, part.labels, part.annotations),
        "spec": spec,
    }


def _strategy(own: Mapping[str, Any] | None) -> Json:
    kind = (own or {}).get("type") or "RollingUpdate"
    if kind != "RollingUpdate":
        return {"type": kind}
    return {"type": kind, "rollingUpdate": (own or {}).get("rollingUpdate") or dict(_ROLLING)}


def service(context: ServiceContext, part: Component) -> Json:
    """The component's Service: every port of the pod's first container."""
    protocols = part.settings.get("servicePortAppProtocols") or {}
    ports = []
    for port in service_ports(part.pod):
        if protocol := protocols.get(port.get("name")):
            port["appProtocol"] = protocol
        ports.append(port)
    annotations = service_annotations(part.annotations)
    spec = {
        **_service_type(part.annotations),
        "selector": {"app": part.object_name},
        "ports": ports,
    }
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(context, part.object_name, part.labels, annotations),
        "spec": spec,
    }


def service_ports(pod: Mapping[str, Any]) -> list[Json]:
    """Service ports from the first container; without any, 8080 named after that container."""
    first = pod["containers"][0]
    declared = first.get("ports") or ()
    if not declared:
        return [_port(first["name"], _DEFAULT_PORT, "TCP")]
    several = len(declared) > 1
    taken = {port["name"] for port in declared if port.get("name")}
    ports = []
    for port in declared:
        number, protocol = port["containerPort"], port.get("protocol") or "TCP"
        name = port.get("name")
        if not name and several:
            name = f"port-{number}"
            name = f"{name}-{protocol.lower()}" if name in taken else name
            taken.add(name)
        ports.append(_port(name, number, protocol))
    return ports


def _port(name: str | None, number: int, protocol: str) -> Json:
    named = {"name": name} if name else {}
    return {**named, "port": number, "targetPort": number, "protocol": protocol}


def _service_type(annotations: Mapping[str, str]) -> Json:
    kind = annotations.get(_SERVICE_TYPE)
    spec: Json = {"type": kind if kind in _SERVICE_TYPES else "ClusterIP"}
    if spec["type"] == "LoadBalancer" and (address := annotations.get(_LOAD_BALANCER_IP)):
        spec["loadBalancerIP"] = address
    return spec


def external_service(context: ServiceContext, target: str, port: int) -> Json:
    """The Service named after the InferenceService, in front of the router or the engine."""
    own = context.service.annotations
    name = context.service.name
    annotations = {key: own[key] for key in own if key.startswith(_EXTERNAL_ANNOTATIONS)}
    labels = {SERVICE_LABEL: name, "component": EXTERNAL}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(context, name, labels, annotations),
        "spec": {
            **_service_type(own),
            "selector": {SERVICE_LABEL: name, "component": target},
            "ports": [_port("http", port, "TCP")],
        },
    }


def pod_disruption_budget(
    context: ServiceContext, part: Component, policy: Mapping[str, Any]
) -> Json:
    """The component's disruption budget: one bound on the pods of its workload."""
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(context, part.object_name, part.labels),
        "spec": {**policy, "selector": {"matchLabels": {"app": part.object_name}}},
    }


def pod_monitor(context: ServiceContext, part: Component) -> Json:
    """What Prometheus scrapes of the component's pods."""
    config = context.snapshot.config.pod_monitor
    names = [
        port["name"] for port in part.pod["containers"][0].get("ports") or () if port.get("name")
    ]
    main = "metrics" if "metrics" in names else next(iter(names), "http")
    endpoints = [_endpoint(main, "/metrics")]
    for extra in part.annotations.get(_EXTRA_ENDPOINTS, "").split(","):
        port, found, path = extra.strip().partition(":")
        if found and port:
            endpoints.append(_endpoint(port, path or "/metrics"))
    for relabeling in ("relabelings", "metricRelabelings"):
        if rules := config.get(relabeling):
            endpoints = [{**endpoint, relabeling: rules} for endpoint in endpoints]
    return {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PodMonitor",
        "metadata": metadata(
            context,
            part.object_name,
            {**part.labels, "app": part.object_name, **(config.get("labels") or {})},
        ),
        "spec": {
            "namespaceSelector": {"matchNames": [context.service.namespace]},
            "selector": {"matchLabels": {"app": part.object_name}},
            "podMetricsEndpoints": endpoints,
        },
    }


def _endpoint(port: str, path: str) -> Json:
    return {"port": port, "path": path, "interval": "10s"}


def router_access(context: ServiceContext, part: Component) -> Sequence[Json]:
    """What a router needs to find its workers: it may read the pods of its namespace."""
    name = part.object_name
    group = "rbac.authorization.k8s.io"
    return (
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": metadata(context, name, part.labels),
        },
        {
            "apiVersion": f"{group}/v1",
            "kind": "Role",
            "metadata": metadata(context, name, part.labels),
            "rules": [
                {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "watch"]}
            ],
        },
        {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": metadata(context, name, part.labels),
            "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
            "subjects": [
                {"kind": "ServiceAccount", "name": name, "namespace": context.service.namespace}
            ],
        },
    )
