"""Who counts the replicas: autoscalers, users and OME, without a dip and without a fight."""

from __future__ import annotations

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


def test_a_container_that_somebody_renames_is_told(
    kubectl: Kubectl, namespace: str, ome_controller: Running
) -> None:
    """Server-side apply puts ours back, and leaves theirs beside it."""
    _start(kubectl, namespace)
    change = '[{"op": "replace", "path": "/spec/template/spec/containers/0/name", "value": "mine"}]'
    target = ("patch", "deployment", "chat-engine", "-n", namespace, "--type=json", "-p")
    kubectl(*target, change)
    until(lambda: "WorkloadAltered" in conditions(kubectl, namespace, "chat"))
    told = conditions(kubectl, namespace, "chat")["WorkloadAltered"]
    assert (told["reason"], told["severity"]) == ("ForeignContainers", "Info")
    pod = deployment(kubectl, namespace, "chat-engine")["spec"]["template"]["spec"]
    assert sorted(each["name"] for each in pod["containers"]) == ["mine", "ome-container"]
    at = [each["name"] for each in pod["containers"]].index("mine")
    kubectl(*target, f'[{{"op": "remove", "path": "/spec/template/spec/containers/{at}"}}]')
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
