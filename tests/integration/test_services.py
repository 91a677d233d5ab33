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


def test_what_only_ome_knows_to_be_wrong_is_told_and_stops_nothing(
    kubectl: Kubectl, namespace: str, ome_controller: Running
) -> None:
    good = service("chat", f"{namespace}-odd")
    bad = service("chat", f"{namespace}-odd")
    bad["spec"]["engine"]["runner"] = {"name": "r", "$patch": "burn"}
    fresh = {**bad, "metadata": {**bad["metadata"], "name": "fresh"}}
    apply(kubectl, namespace, runtime(f"{namespace}-odd"), good)
    ready(kubectl, namespace, "chat")
    apply(kubectl, namespace, bad, fresh)
    kubectl("wait", "--for=condition=Ready=False", "isvc/fresh", "-n", namespace)
    said = "spec.engine.runner.$patch: $patch must be delete or replace"
    events = ("get", "events", "-n", namespace, "--field-selector", "involvedObject.name=chat")
    until(lambda: said in kubectl(*events))
    ready(kubectl, namespace, "chat")
    told = kubectl("describe", "isvc", "fresh", "-n", namespace)
    assert said in told
    assert "DirectiveInvalid" in told
    # Mended.
    apply(kubectl, namespace, {**good, "metadata": fresh["metadata"]})
    ready(kubectl, namespace, "fresh")
