"""Who counts the replicas: autoscalers, users and OME, without a dip and without a fight."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from objects import apply, conditions, deployment, image, ready, runtime, service
from running import Running

from conftest import until
from controlplane import Kubectl
from controlplane.kubectl import kubectl_path

NONE = {"class": "None"}
HPA = {"class": "HPA"}


def replicas(kubectl: Kubectl, namespace: str, name: str = "chat-engine") -> int:
    """The count that a Deployment asks for."""
    return int(deployment(kubectl, namespace, name)["spec"]["replicas"])


@contextmanager
def counts(kubectl: Kubectl, namespace: str) -> Iterator[list[int]]:
    """Every count that the Deployment asks for while the block runs."""
    environ = {**os.environ, "KUBECONFIG": str(kubectl.kubeconfig)}
    output = "jsonpath={.spec.replicas}{'\\n'}"
    command = [str(kubectl_path({})), "get", "deployment", "chat-engine", "-n", namespace, "-w"]
    watch = subprocess.Popen(
        [*command, "-o", output], stdout=subprocess.PIPE, text=True, env=environ
    )
    found: list[int] = []

    def read() -> None:
        assert watch.stdout is not None
        found.extend(int(line) for line in watch.stdout if line.strip())

    thread = threading.Thread(target=read)
    thread.start()
    try:
        until(lambda: bool(found))
        yield found
    finally:
        watch.terminate()
        watch.wait()
        thread.join()
        assert watch.stdout is not None
        watch.stdout.close()


def _start(kubectl: Kubectl, namespace: str, **engine: Any) -> str:
    name = f"{namespace}-r"
    apply(kubectl, namespace, runtime(name), service("chat", name, **engine))
    ready(kubectl, namespace, "chat")
    return name


def test_what_an_autoscaler_has_counted_survives_an_edit(
    kubectl: Kubectl, namespace: str, ome_controller: Running
) -> None:
    name = _start(kubectl, namespace, maxReplicas=5)
    kubectl("scale", "-n", namespace, "deployment/chat-engine", "--replicas=3")
    edited = service("chat", name, maxReplicas=5, runner={"image": "engine:v2"})
    apply(kubectl, namespace, edited)
    until(lambda: image(kubectl, namespace, "chat-engine") == "engine:v2")
    ome_controller.settle()
    assert replicas(kubectl, namespace) == 3


def test_counting_is_handed_over_without_a_dip(
    kubectl: Kubectl, namespace: str, ome_controller: Running
) -> None:
    name = _start(kubectl, namespace, minReplicas=3, maxReplicas=5, autoscaler=NONE)
    assert replicas(kubectl, namespace) == 3
    hpa = ("get", "hpa", "-n", namespace, "-o", "name")
    with counts(kubectl, namespace) as seen:
        for block in (HPA, NONE, HPA, {"class": "External"}, NONE, HPA):
            apply(
                kubectl,
                namespace,
                service("chat", name, minReplicas=3, maxReplicas=5, autoscaler=block),
            )
            until(lambda block=block: bool(kubectl(*hpa)) == (block == HPA))
            ome_controller.settle()
        assert set(seen) == {3}
    kubectl("scale", "-n", namespace, "deployment/chat-engine", "--replicas=4")
    ome_controller.settle()
    ome_controller.resync()
    assert replicas(kubectl, namespace) == 4


def test_a_user_who_scales(kubectl: Kubectl, namespace: str, ome_controller: Running) -> None:
    """With class None OME counts: it sets its number again, once."""
    _start(kubectl, namespace, minReplicas=2, autoscaler=NONE)
    ome_controller.settle()
    before = len(ome_controller.writes_in(namespace, "deployments"))
    kubectl("scale", "-n", namespace, "deployment/chat-engine", "--replicas=5")
    until(lambda: replicas(kubectl, namespace) == 2)
    ome_controller.settle()
    assert len(ome_controller.writes_in(namespace, "deployments")) == before + 1


def test_a_user_who_restarts_labels_and_annotates(
    kubectl: Kubectl, namespace: str, ome_controller: Running
) -> None:
    _start(kubectl, namespace)
    ome_controller.settle()
    target = "deployment/chat-engine"
    before = ome_controller.writes_in(namespace, "deployments")
    kubectl("rollout", "restart", "-n", namespace, target)
    kubectl("rollout", "status", "-n", namespace, target, "--timeout=60s")
    kubectl("label", "-n", namespace, target, "team=a")
    kubectl("annotate", "-n", namespace, target, "note=mine")
    ome_controller.settle()
    ome_controller.resync()
    found = deployment(kubectl, namespace, "chat-engine")
    assert found["metadata"]["labels"]["team"] == "a"
    assert found["metadata"]["annotations"]["note"] == "mine"
    restarted = "kubectl.kubernetes.io/restartedAt"
    assert restarted in found["spec"]["template"]["metadata"]["annotations"]
    assert ome_controller.writes_in(namespace, "deployments") == before


def test_a_port_that_somebody_changes_is_set_again(
    kubectl: Kubectl, namespace: str, ome_controller: Running
) -> None:
    _start(kubectl, namespace)
    change = '[{"op": "replace", "path": "/spec/ports/0/port", "value": 99}]'
    kubectl("patch", "service", "chat-engine", "-n", namespace, "--type=json", "-p", change)

    def ports() -> list[int]:
        found = kubectl.run(
            "get", "service", "chat-engine", "-n", namespace, "-o", "jsonpath={.spec.ports[*].port}"
        )
        return [int(each) for each in found.stdout.split()]

    until(lambda: ports() == [8080])
    ome_controller.settle()
    before = ome_controller.writes_in(namespace)
    ome_controller.resync()
    assert ome_controller.writes_in(namespace) == before


def test_what_somebody_changes_of_ours_is_set_again(
    kubectl: Kubectl, namespace: str, ome_controller: Running
) -> None:
    _start(kubectl, namespace)
    target = "deployment/chat-engine"
    kubectl("set", "image", "-n", namespace, target, "ome-container=other:v1")
    until(lambda: image(kubectl, namespace, "chat-engine") == "engine:v1")
    kubectl("label", "-n", namespace, target, "--overwrite", "ome.io/inferenceservice=other")
    kubectl("label", "-n", namespace, "service/chat-engine", "component-")
    kubectl("delete", "hpa", "-n", namespace, "chat-engine")

    def restored() -> bool:
        found = kubectl.json("get", "deploy,svc,hpa", "-n", namespace, "-l", "component=engine")
        kinds = sorted(each["kind"] for each in found["items"])
        services = {
            each["metadata"]["labels"]["ome.io/inferenceservice"] for each in found["items"]
        }
        return kinds == ["Deployment", "HorizontalPodAutoscaler", "Service"] and services == {
            "chat"
        }

    until(restored)
    ome_controller.settle()
    before = ome_controller.writes_in(namespace)
    ome_controller.resync()
    assert ome_controller.writes_in(namespace) == before


# A change of one of OME's fields that leaves another in its way, so that an apply is refused.
IN_THE_WAY: dict[str, list[dict[str, Any]]] = {
    "a value by reference": [
        {
            "op": "replace",
            "path": "/containers/0/env/0",
            "value": {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
        }
    ],
    "another handler of a probe": [
        {
            "op": "replace",
            "path": "/containers/0/readinessProbe",
            "value": {"tcpSocket": {"port": 8080}},
        }
    ],
    "another source of a volume": [
        {"op": "replace", "path": "/volumes/0", "value": {"name": "v", "hostPath": {"path": "/x"}}}
    ],
    "another number of a named port": [
        {"op": "replace", "path": "/containers/0/ports/0/containerPort", "value": 9090}
    ],
}


def test_what_is_in_the_way_of_an_apply_goes(
    kubectl: Kubectl, namespace: str, ome_controller: Running
) -> None:
    name = f"{namespace}-r"
    made = runtime(name)
    runner = made["spec"]["engineConfig"]["runner"]
    runner |= {
        "env": [{"name": "A", "value": "1"}],
        "readinessProbe": {"httpGet": {"path": "/h", "port": 8080}},
        "volumeMounts": [{"name": "v", "mountPath": "/v"}],
        "ports": [{"containerPort": 8080, "name": "http"}],
    }
    made["spec"]["engineConfig"]["volumes"] = [{"name": "v", "emptyDir": {"medium": "Memory"}}]
    apply(kubectl, namespace, made, service("chat", name))
    ready(kubectl, namespace, "chat")

    def pod() -> dict[str, Any]:
        found = deployment(kubectl, namespace, "chat-engine")
        return dict(found["spec"]["template"]["spec"])

    ours = pod()
    assert [ours["containers"][0][each] for each in ("env", "readinessProbe", "ports")]
    for what, change in IN_THE_WAY.items():
        at = [{**each, "path": f"/spec/template/spec{each['path']}"} for each in change]
        args = ("patch", "deployment", "chat-engine", "-n", namespace, "--type=json")
        kubectl(*args, "-p", json.dumps(at))
        until(lambda: pod() == ours)
        ome_controller.settle()
        get = ("get", "deployment", "chat-engine", "-n", namespace, "--show-managed-fields")
        managers = {each["manager"] for each in kubectl.json(*get)["metadata"]["managedFields"]}
        assert "ome-controller" in managers
        assert "ome-controller-mending" not in managers, what
    assert "WorkloadApplied" not in conditions(kubectl, namespace, "chat")
    assert "WorkloadAltered" not in conditions(kubectl, namespace, "chat")
    protocol = '[{"op": "replace", "path": "/spec/ports/0/protocol", "value": "UDP"}]'
    kubectl("patch", "service", "chat-engine", "-n", namespace, "--type=json", "-p", protocol)

    def protocols() -> str:
        path = "jsonpath={.spec.ports[*].protocol}"
        return kubectl.run("get", "service", "chat-engine", "-n", namespace, "-o", path).stdout

    until(lambda: protocols() == "TCP")
    # A later edit of the runtime arrives.
    runner["image"] = "engine:v2"
    apply(kubectl, namespace, made)
    until(lambda: image(kubectl, namespace, "chat-engine") == "engine:v2")


def test_what_a_finalizer_holds_up_is_told(
    kubectl: Kubectl, namespace: str, ome_controller: Running
) -> None:
    _start(kubectl, namespace)
    target = ("patch", "service", "chat-engine", "-n", namespace, "--type=json", "-p")
    change = [
        {"op": "add", "path": "/metadata/finalizers", "value": ["x.io/f"]},
        {"op": "replace", "path": "/spec/ports/0/port", "value": 7000},
    ]
    kubectl(*target, json.dumps(change))
    until(lambda: "WorkloadApplied" in conditions(kubectl, namespace, "chat"))
    told = conditions(kubectl, namespace, "chat")["WorkloadApplied"]
    assert (told["status"], told["reason"]) == ("False", "WaitingForDeletion")
    assert "(its finalizers hold it up: x.io/f)" in told["message"]
    kubectl(*target, '[{"op": "remove", "path": "/metadata/finalizers"}]')
    until(lambda: "WorkloadApplied" not in conditions(kubectl, namespace, "chat"))
    found = kubectl.json("get", "service", "chat-engine", "-n", namespace)
    assert [each["port"] for each in found["spec"]["ports"]] == [8080]


def test_what_somebody_adds_to_a_deployment_is_told(
    kubectl: Kubectl, namespace: str, ome_controller: Running
) -> None:
    """Server-side apply puts ours back, and leaves theirs beside it."""
    _start(kubectl, namespace)
    change = '[{"op": "replace", "path": "/spec/template/spec/containers/0/name", "value": "mine"}]'
    target = ("patch", "deployment", "chat-engine", "-n", namespace, "--type=json", "-p")
    kubectl(*target, change)
    until(lambda: "WorkloadAltered" in conditions(kubectl, namespace, "chat"))
    ome_controller.settle()
    told = conditions(kubectl, namespace, "chat")["WorkloadAltered"]
    assert (told["reason"], told["severity"]) == ("ForeignFields", "Info")
    assert "what OME didn't put there: containers[mine]; if" in told["message"]
    pod = deployment(kubectl, namespace, "chat-engine")["spec"]["template"]["spec"]
    assert sorted(each["name"] for each in pod["containers"]) == ["mine", "ome-container"]
    at = [each["name"] for each in pod["containers"]].index("mine")
    kubectl(*target, f'[{{"op": "remove", "path": "/spec/template/spec/containers/{at}"}}]')
    until(lambda: "WorkloadAltered" not in conditions(kubectl, namespace, "chat"))
    kubectl("rollout", "pause", "deployment/chat-engine", "-n", namespace)
    until(lambda: "WorkloadAltered" in conditions(kubectl, namespace, "chat"))
    assert conditions(kubectl, namespace, "chat")["WorkloadAltered"]["reason"] == "Paused"
    kubectl("rollout", "resume", "deployment/chat-engine", "-n", namespace)
    until(lambda: "WorkloadAltered" not in conditions(kubectl, namespace, "chat"))


def test_pods_that_a_quota_forbids_are_told(
    kubectl: Kubectl, namespace: str, ome_controller: Running
) -> None:
    kubectl("create", "quota", "none", "-n", namespace, "--hard=pods=0")
    name = f"{namespace}-r"
    apply(kubectl, namespace, runtime(name), service("chat", name))
    until(
        lambda: (
            conditions(kubectl, namespace, "chat").get("Ready", {}).get("reason") == "FailedCreate"
        )
    )
    told = conditions(kubectl, namespace, "chat")["EngineReady"]
    assert told["status"] == "False"
    assert "exceeded quota: none" in told["message"]
    kubectl("delete", "quota", "none", "-n", namespace)
    ready(kubectl, namespace, "chat")
