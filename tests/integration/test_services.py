"""Services from creation to their end, with the real control plane and kubectl as the user."""

from __future__ import annotations

import json
from typing import Any

from running import Running

from conftest import until
from controlplane import Kubectl

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


def test_a_service_becomes_ready_and_goes(
    kubectl: Kubectl, namespace: str, ome_controller: Running
) -> None:
    apply(kubectl, namespace, runtime(f"{namespace}-plain"), service("chat", f"{namespace}-plain"))
    ready(kubectl, namespace, "chat")
    raw = kubectl.json("get", "isvc", "chat", "-n", namespace)
    assert raw["status"]["observedGeneration"] == raw["metadata"]["generation"] == 1
    assert raw["status"]["url"] == f"http://chat.{namespace}.svc.cluster.local:8080"
    assert raw["metadata"].get("finalizers") is None
    before = ome_controller.settle() or ome_controller.writes()
    for _ in range(100):
        ome_controller.resync()
    assert ome_controller.writes() == before
    kubectl("delete", "isvc", "chat", "-n", namespace)
    owned = "deployments,services,hpa,pdb,serviceaccounts,roles,rolebindings,pods"
    label = ("-l", "ome.io/inferenceservice=chat")
    until(lambda: not kubectl.json("get", owned, "-n", namespace, *label)["items"])
