"""Services from creation to their end, with the real control plane and kubectl as the user."""

from __future__ import annotations

from objects import apply, ready, runtime, service
from running import Running

from conftest import until
from controlplane import Kubectl


def test_a_service_becomes_ready_and_goes(
    kubectl: Kubectl, namespace: str, ome_controller: Running
) -> None:
    apply(kubectl, namespace, runtime(f"{namespace}-plain"), service("chat", f"{namespace}-plain"))
    ready(kubectl, namespace, "chat")
    raw = kubectl.json("get", "isvc", "chat", "-n", namespace)
    assert raw["status"]["observedGeneration"] == raw["metadata"]["generation"] == 1
    assert raw["status"]["url"] == f"http://chat.{namespace}.svc.cluster.local:8080"
    assert raw["metadata"].get("finalizers") is None
    kubectl("delete", "isvc", "chat", "-n", namespace)
    owned = "deployments,services,hpa,pdb,serviceaccounts,roles,rolebindings,pods"
    label = ("-l", "ome.io/inferenceservice=chat")
    until(lambda: not kubectl.json("get", owned, "-n", namespace, *label)["items"])
