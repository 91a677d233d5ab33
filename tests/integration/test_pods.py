"""Simulated nodes and kubelets: pods run, fail as they are told, recover and go."""

from __future__ import annotations

import json
from typing import Any

import pytest

from conftest import until
from controlplane import Kubectl

WAIT = "--timeout=60s"


def _pod(name: str, behaviour: str | None = None, **spec: Any) -> str:
    annotations = {"simulate.ome.io/pod": behaviour} if behaviour else {}
    container = {"name": "c", "image": "engine:v1", **spec.pop("container", {})}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"containers": [container], **spec},
    }
    return json.dumps(pod)


def _deployment(name: str, behaviour: str | None, replicas: int, **spec: Any) -> str:
    pod = json.loads(_pod(name, behaviour, **spec))
    template = {"metadata": {**pod["metadata"], "labels": {"app": name}}, "spec": pod["spec"]}
    del template["metadata"]["name"]
    body = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
    return json.dumps(
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": body}
    )


def test_nodes(kubectl: Kubectl) -> None:
    columns = "N:.metadata.name,P:.metadata.labels.nvidia\\.com/gpu\\.product,G:.status.allocatable.nvidia\\.com/gpu"
    printed = kubectl("get", "nodes", "-o", f"custom-columns={columns}", "--no-headers")
    assert [line.split() for line in printed.splitlines()] == [
        ["cpu-0", "<none>", "<none>"],
        ["h100-0", "NVIDIA-H100-80GB-HBM3", "8"],
        ["l40s-0", "NVIDIA-L40S", "8"],
    ]


def test_a_deployment_on_gpu_nodes(kubectl: Kubectl, namespace: str) -> None:
    """Two replicas take all GPUs of the node that they ask for; a third finds no room."""
    spec = {
        "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-L40S"},
        "container": {"resources": {"limits": {"nvidia.com/gpu": "4"}}},
    }
    kubectl("apply", "-n", namespace, "-f", "-", stdin=_deployment("chat", None, 2, **spec))
    kubectl("rollout", "status", "-n", namespace, "deployment/chat", WAIT)
    pods = kubectl.json("get", "pods", "-n", namespace)["items"]
    assert [pod["spec"]["nodeName"] for pod in pods] == ["l40s-0", "l40s-0"]
    kubectl("scale", "-n", namespace, "deployment/chat", "--replicas=3")
    waiting = ("-l", "app=chat", "--field-selector=spec.nodeName=,status.phase=Pending")
    until(lambda: len(kubectl.json("get", "pods", "-n", namespace, *waiting)["items"]) == 1)
    kubectl("delete", "-n", namespace, "deployment/chat", "--cascade=foreground", WAIT)
    assert kubectl.json("get", "pods", "-n", namespace)["items"] == []


@pytest.mark.parametrize(
    ("behaviour", "phase", "state"),
    [
        ("not-ready", "Running", "running"),
        ("crash-loop", "Running", "CrashLoopBackOff"),
        ("image-pull", "Pending", "ImagePullBackOff"),
        ("failed", "Failed", "Error"),
    ],
)
def test_a_pod_fails(
    kubectl: Kubectl, namespace: str, behaviour: str, phase: str, state: str
) -> None:
    kubectl("apply", "-n", namespace, "-f", "-", stdin=_pod("p", behaviour))
    told = '{.status.conditions[?(@.type=="Ready")].message}'
    kubectl("wait", "-n", namespace, "pod/p", f"--for=jsonpath={told}=simulated: {behaviour}", WAIT)
    status = kubectl.json("get", "-n", namespace, "pod/p")["status"]
    ((kind, detail),) = status["containerStatuses"][0]["state"].items()
    assert (status["phase"], detail.get("reason", kind)) == (phase, state)
    ready = [each for each in status["conditions"] if each["type"] == "Ready"]
    assert [each["status"] for each in ready] == ["False"]


def test_a_pod_breaks_and_recovers(kubectl: Kubectl, namespace: str) -> None:
    """The annotation works on a pod that runs; a Deployment sees it."""
    kubectl("apply", "-n", namespace, "-f", "-", stdin=_deployment("chat", None, 1))
    available = ("wait", "-n", namespace, "deployment/chat", WAIT)
    kubectl(*available, "--for=condition=Available=True")
    annotate = ("annotate", "-n", namespace, "pod", "-l", "app=chat")
    kubectl(*annotate, "simulate.ome.io/pod=crash-loop")
    kubectl(*available, "--for=condition=Available=False")
    kubectl(*annotate, "simulate.ome.io/pod-")
    kubectl(*available, "--for=condition=Available=True")


def test_a_job_completes(kubectl: Kubectl, namespace: str) -> None:
    kubectl("create", "-n", namespace, "job", "download", "--image=agent:v1")
    kubectl("wait", "-n", namespace, "job/download", "--for=condition=Complete", WAIT)


def test_init_containers_and_readiness_gates(kubectl: Kubectl, namespace: str) -> None:
    first = {"name": "first", "image": "a:v1"}
    sidecar = {"name": "sidecar", "image": "b:v1", "restartPolicy": "Always"}
    gates = [{"conditionType": "example.com/gate"}]
    pod = _pod("p", None, initContainers=[first, sidecar], readinessGates=gates)
    kubectl("apply", "-n", namespace, "-f", "-", stdin=pod)
    kubectl("wait", "-n", namespace, "pod/p", "--for=condition=Ready", WAIT)
    statuses = kubectl.json("get", "-n", namespace, "pod/p")["status"]["initContainerStatuses"]
    assert [(each["name"], *each["state"]) for each in statuses] == [
        ("first", "terminated"),
        ("sidecar", "running"),
    ]


def test_delete_says_where(kubectl: Kubectl, namespace: str) -> None:
    kubectl("apply", "-n", namespace, "-f", "-", stdin=_pod("p"))
    printed = kubectl("delete", "-n", namespace, "pod/p", WAIT)
    assert printed == f'pod "p" deleted from {namespace} namespace\n'
