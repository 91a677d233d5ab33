"""What belongs to a service goes with it; what belongs to somebody else is left alone."""

from __future__ import annotations

import json
from typing import Any

import pytest
from objects import apply, conditions, events, ready, runtime, service
from running import Running

from conftest import until
from controlplane import Kubectl

OWNED = "deployments,services,hpa,pdb,serviceaccounts,roles,rolebindings"


def _names(kubectl: Kubectl, namespace: str) -> set[str]:
    label = ("-l", "ome.io/inferenceservice")
    found = kubectl.json("get", OWNED, "-n", namespace, *label)["items"]
    return {f"{each['kind']}/{each['metadata']['name']}" for each in found}


def _pair(name: str) -> dict[str, Any]:
    made = runtime(name)
    made["spec"]["routerConfig"] = {
        "runner": {"name": "router", "image": "router:v1", "ports": [{"containerPort": 30080}]}
    }
    return made


ENGINE = {
    "Deployment/chat-engine",
    "Service/chat-engine",
    "HorizontalPodAutoscaler/chat-engine",
    "Service/chat",
}
ROUTER = {
    "Deployment/chat-router",
    "Service/chat-router",
    "HorizontalPodAutoscaler/chat-router",
    "ServiceAccount/chat-router",
    "Role/chat-router",
    "RoleBinding/chat-router",
}


def test_a_component_is_removed_with_all_it_has(
    kubectl: Kubectl, namespace: str, ome_controller: Running
) -> None:
    name = f"{namespace}-r"
    both = service("chat", name)
    both["spec"]["router"] = {"minReplicas": 1}
    foreign = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {
            "name": "foreign",
            "labels": {"ome.io/inferenceservice": "chat", "component": "router"},
        },
        "spec": {"ports": [{"port": 80}]},
    }
    apply(kubectl, namespace, _pair(name), both, foreign)
    until(lambda: _names(kubectl, namespace) == ENGINE | ROUTER | {"Service/foreign"})
    until(lambda: "RouterReady" in conditions(kubectl, namespace, "chat"))
    apply(kubectl, namespace, service("chat", name))
    until(lambda: _names(kubectl, namespace) == ENGINE | {"Service/foreign"})
    until(lambda: "RouterReady" not in conditions(kubectl, namespace, "chat"))
    kubectl("delete", "isvc", "chat", "-n", namespace)
    until(lambda: _names(kubectl, namespace) == {"Service/foreign"})


# A server-side apply of ours would have no quarrel with the last two.
THEIRS: dict[str, dict[str, Any]] = {
    "with a selector": {"selector": {"app": "mine"}, "ports": [{"port": 80, "targetPort": 80}]},
    "without selector and ports": {"clusterIP": "None"},
    "without selector": {"ports": [{"port": 9, "name": "theirs"}]},
}


@pytest.mark.parametrize("name", THEIRS)
def test_a_service_of_somebody_else_is_never_taken_over(
    name: str, kubectl: Kubectl, namespace: str, ome_controller: Running
) -> None:
    metadata = {"name": "chat"}
    mine = {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": THEIRS[name]}
    apply(kubectl, namespace, mine)
    before = kubectl.json("get", "service", "chat", "-n", namespace)
    apply(kubectl, namespace, runtime(f"{namespace}-r"), service("chat", f"{namespace}-r"))
    until(lambda: "WorkloadApplied" in conditions(kubectl, namespace, "chat"))
    told = conditions(kubectl, namespace, "chat")["WorkloadApplied"]
    text = (
        f'Service "chat" in namespace {namespace} is not controlled by expected owner '
        f"InferenceService/{namespace}/chat; it is left as it is: rename or delete it, or rename the "
        "InferenceService"
    )
    assert (told["status"], told["reason"], told["message"]) == ("False", "NotControlled", text)
    assert events(kubectl, namespace, "chat", "InternalError") == [text]
    assert kubectl.json("get", "service", "chat", "-n", namespace) == before
    until(lambda: _names(kubectl, namespace) == ENGINE - {"Service/chat"})
    kubectl("delete", "service", "chat", "-n", namespace)
    until(lambda: "WorkloadApplied" not in conditions(kubectl, namespace, "chat"))
    assert _names(kubectl, namespace) == ENGINE


def test_a_service_made_anew_waits_for_the_old_one(
    kubectl: Kubectl, namespace: str, ome_controller: Running
) -> None:
    apply(kubectl, namespace, runtime(f"{namespace}-r"), service("chat", f"{namespace}-r"))
    ready(kubectl, namespace, "chat")
    first = kubectl.json("get", "deployment", "chat-engine", "-n", namespace)["metadata"]["uid"]
    kubectl("delete", "isvc", "chat", "-n", namespace, "--wait=false")
    apply(kubectl, namespace, service("chat", f"{namespace}-r"))
    ready(kubectl, namespace, "chat")
    second = kubectl.json("get", "deployment", "chat-engine", "-n", namespace)["metadata"]["uid"]
    assert second != first
    assert "WorkloadApplied" not in conditions(kubectl, namespace, "chat")


def test_a_finalizer_that_was_left_holds_nothing_up(
    kubectl: Kubectl, namespace: str, ome_controller: Running
) -> None:
    """Neither does a runtime that isn't there."""
    left = service("chat", "missing")
    left["metadata"]["finalizers"] = ["inferenceservice.finalizers"]
    apply(kubectl, namespace, left)
    until(lambda: "RuntimeReady" in conditions(kubectl, namespace, "chat"))
    kubectl("delete", "isvc", "chat", "-n", namespace, "--timeout=30s")


def test_a_virtual_deployment_leaves_what_ran(
    kubectl: Kubectl, namespace: str, ome_controller: Running
) -> None:
    """It is told, with the command that removes it."""
    apply(kubectl, namespace, runtime(f"{namespace}-r"), service("chat", f"{namespace}-r"))
    ready(kubectl, namespace, "chat")
    annotation = "ome.io/deploymentMode=VirtualDeployment"
    kubectl("annotate", "isvc", "chat", "-n", namespace, annotation)
    until(
        lambda: conditions(kubectl, namespace, "chat")["Ready"].get("reason") == "VirtualDeployment"
    )
    told = conditions(kubectl, namespace, "chat")["WorkloadLeft"]
    assert told["status"] == "True"
    start = "chat-engine of an earlier deployment mode still runs; remove it with: kubectl "
    assert told["message"].startswith(start)
    assert _names(kubectl, namespace) >= ENGINE
    kubectl(*told["message"].removeprefix(start).split())
    until(lambda: "WorkloadLeft" not in conditions(kubectl, namespace, "chat"))
    ome_controller.resync()
    assert _names(kubectl, namespace) == set()


def test_an_object_of_the_largest_size(
    kubectl: Kubectl, namespace: str, ome_controller: Running
) -> None:
    """1.4 MB, near the limit of what the API server stores."""
    large = runtime(f"{namespace}-large")
    filler = [{"name": f"V{at}", "value": "x" * 1000} for at in range(1380)]
    large["spec"]["engineConfig"]["runner"]["env"] = filler
    kubectl("create", "-f", "-", stdin=json.dumps(large))
    small = service("small", f"{namespace}-r")
    apply(kubectl, namespace, runtime(f"{namespace}-r"), small)
    apply(kubectl, namespace, service("large", f"{namespace}-large"))
    ready(kubectl, namespace, "small")
    until(lambda: "EngineReady" in conditions(kubectl, namespace, "large"))
