"""Objects that tests apply, and what they ask of the cluster."""

from __future__ import annotations

import json
from typing import Any

from controlplane import Kubectl

__all__ = [
    "WAIT",
    "apply",
    "conditions",
    "deployment",
    "events",
    "model",
    "ready",
    "runtime",
    "service",
]

WAIT = "--timeout=60s"


def runtime(name: str, **spec: Any) -> dict[str, Any]:
    """A ClusterServingRuntime that runs one container."""
    runner = {
        "name": "ome-container",
        "image": "engine:v1",
        "ports": [{"containerPort": 8080, "name": "http1"}],
    }
    return {
        "apiVersion": "ome.io/v1beta1",
        "kind": "ClusterServingRuntime",
        "metadata": {"name": name},
        "spec": {"engineConfig": {"runner": runner}, **spec},
    }


def service(name: str, runtime_name: str, **engine: Any) -> dict[str, Any]:
    """An InferenceService that names a runtime and no model."""
    return {
        "apiVersion": "ome.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": name},
        "spec": {"runtime": {"name": runtime_name}, "engine": {"minReplicas": 1, **engine}},
    }


def apply(kubectl: Kubectl, namespace: str, *objects: dict[str, Any]) -> None:
    """kubectl apply."""
    items = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
    kubectl("apply", "-n", namespace, "-f", "-", stdin=json.dumps(items))


def conditions(kubectl: Kubectl, namespace: str, name: str) -> dict[str, Any]:
    """The conditions of a service by type."""
    raw = kubectl.json("get", "isvc", name, "-n", namespace)
    return {each["type"]: each for each in (raw.get("status") or {}).get("conditions", [])}


def ready(kubectl: Kubectl, namespace: str, *names: str) -> None:
    """Wait until services are Ready."""
    kubectl("wait", "-n", namespace, "--for=condition=Ready", "isvc", *names, WAIT)


def model(name: str, **spec: Any) -> dict[str, Any]:
    """A ClusterBaseModel on a node's disk."""
    facts = {
        "storage": {"storageUri": "hf://example/model", "path": "/models/m"},
        "modelFormat": {"name": "safetensors"},
        "modelFramework": {"name": "transformers"},
        "modelArchitecture": "LlamaForCausalLM",
    }
    return {
        "apiVersion": "ome.io/v1beta1",
        "kind": "ClusterBaseModel",
        "metadata": {"name": name},
        "spec": {**facts, **spec},
    }


def supports(architecture: str = "LlamaForCausalLM", priority: int = 1) -> list[dict[str, Any]]:
    """An entry of `supportedModelFormats` that OME may choose."""
    entry = {
        "modelFormat": {"name": "safetensors"},
        "modelFramework": {"name": "transformers"},
        "modelArchitecture": architecture,
        "autoSelect": True,
        "priority": priority,
    }
    return [entry]


def deployment(kubectl: Kubectl, namespace: str, name: str) -> dict[str, Any]:
    """A Deployment."""
    found: dict[str, Any] = kubectl.json("get", "deployment", name, "-n", namespace)
    return found


def image(kubectl: Kubectl, namespace: str, name: str) -> str:
    """The image of a Deployment's first container."""
    pod = deployment(kubectl, namespace, name)["spec"]["template"]["spec"]
    return str(pod["containers"][0]["image"])


def events(kubectl: Kubectl, namespace: str, name: str, reason: str) -> list[str]:
    """The messages of a service's events with a reason."""
    fields = f"involvedObject.name={name},reason={reason}"
    found = kubectl.json("get", "events", "-n", namespace, "--field-selector", fields)["items"]
    return [each["message"] for each in found]
