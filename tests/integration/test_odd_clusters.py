"""Clusters that lack something: CRDs, permissions; and clusters that are full of what isn't OME's."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from objects import apply, conditions, events, ready, runtime, service
from processes import process
from running import running

from conftest import install_crds, ome, permissions, until
from controlplane import ControlPlane
from ome.controller.client import Api
from ome.controller.connecting import connect
from ome.controller.resources import BY_KIND, Resource

_SECRET = Resource("Secret", "v1", "secrets")
ACCOUNT = "system:serviceaccount:ome:ome-controller-manager"
POD_MONITOR = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: podmonitors.monitoring.coreos.com
spec:
  group: monitoring.coreos.com
  names: {kind: PodMonitor, plural: podmonitors, singular: podmonitor, listKind: PodMonitorList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}
"""


@pytest.fixture
def plane() -> Iterator[ControlPlane]:
    """A control plane without anything of OME's."""
    with ControlPlane.start() as found:
        found.kubectl("create", "namespace", "ome")
        found.kubectl("create", "namespace", "demo")
        yield found


def _account(plane: ControlPlane, rules: str) -> Path:
    plane.kubectl("apply", "-f", "-", stdin=rules)
    return plane.as_user(ACCOUNT, ["system:authenticated"]).kubeconfig


def _without(rules: str, resource: str) -> str:
    """The permissions without a resource's rule."""
    block = rf"- apiGroups: \[[^\]]*\]\n  resources: \[{resource}\]\n  verbs: [^\n]*\n"
    found, count = re.subn(block, "", rules)
    assert count == 1
    return found


def test_crds_that_come_late_and_go(plane: ControlPlane) -> None:
    kubectl = plane.kubectl
    with running(_account(plane, permissions())) as controller:
        missing = "not served; install the CustomResourceDefinitions (ome crds)"
        expected = {
            f"{name}.ome.io: {missing}"
            for name in (
                "acceleratorclasses",
                "basemodels",
                "clusterbasemodels",
                "clusterservingruntimes",
                "inferenceservices",
                "servingruntimes",
            )
        }
        until(lambda: set(controller.controller.problems()) == expected)
        crds = ome("crds").split("\n---\n")
        rest = [each for each in crds if "acceleratorclasses.ome.io" not in each]
        kubectl("apply", "-f", "-", stdin="\n---\n".join(rest))
        kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
        # One kind is missing still: what doesn't need it works.
        until(lambda: len(controller.controller.problems()) == 1)
        apply(kubectl, "demo", runtime("r"), service("chat", "r"))
        ready(kubectl, "demo", "chat")
        kubectl("apply", "-f", "-", stdin=ome("crds"))
        until(lambda: controller.controller.problems() == [])
        # A kind that other operators bring is used as soon as it is there.
        kubectl("apply", "-f", "-", stdin=POD_MONITOR)
        until(lambda: "podmonitor" in kubectl("api-resources", "-o", "name"))
        names = ("get", "podmonitors", "-n", "demo", "-o", "name")
        until(lambda: kubectl(*names) == "podmonitor.monitoring.coreos.com/chat-engine\n")
        kubectl("delete", "crd", "podmonitors.monitoring.coreos.com")
        controller.settle()
        before = controller.writes()
        controller.resync()
        assert controller.writes() == before
        kubectl("delete", "isvc", "chat", "-n", "demo", "--timeout=30s")


def test_a_kind_that_may_not_be_touched(plane: ControlPlane) -> None:
    """Its objects are left out, and told; the others are there."""
    kubectl = plane.kubectl
    install_crds(kubectl)
    rules = _without(permissions(), "horizontalpodautoscalers")
    with running(_account(plane, rules)) as controller:
        apply(kubectl, "demo", runtime("r"), service("chat", "r"))
        ready(kubectl, "demo", "chat")
        until(lambda: "WorkloadApplied" in conditions(kubectl, "demo", "chat"))
        told = conditions(kubectl, "demo", "chat")["WorkloadApplied"]
        assert (told["status"], told["reason"]) == ("False", "NotReadable")
        assert told["message"].startswith(
            "horizontalpodautoscalers.autoscaling can't be read: horizontalpodautoscalers.autoscaling "
            f'is forbidden: User "{ACCOUNT}" cannot list resource'
        )
        assert events(kubectl, "demo", "chat", "InternalError") == [told["message"]]
        (problem,) = controller.controller.problems()
        assert problem.startswith("horizontalpodautoscalers.autoscaling: ")
        # Granted later, it is made up for.
        kubectl("apply", "-f", "-", stdin=permissions())
        until(lambda: "WorkloadApplied" not in conditions(kubectl, "demo", "chat"))
        assert kubectl("get", "hpa", "-n", "demo", "-o", "name")


def test_what_may_be_read_and_not_written(plane: ControlPlane) -> None:
    kubectl = plane.kubectl
    install_crds(kubectl)
    rules = permissions().replace(
        "resources: [horizontalpodautoscalers]\n  verbs: [get, list, watch, create, patch, delete]",
        "resources: [horizontalpodautoscalers]\n  verbs: [get, list, watch]",
    )
    assert rules != permissions()
    with running(_account(plane, rules)):
        apply(kubectl, "demo", runtime("r"), service("chat", "r"))
        ready(kubectl, "demo", "chat")
        until(lambda: "WorkloadApplied" in conditions(kubectl, "demo", "chat"))
        told = conditions(kubectl, "demo", "chat")["WorkloadApplied"]
        assert told["reason"] == "Forbidden"
        assert f'User "{ACCOUNT}" cannot patch resource' in told["message"]
        assert told["message"].endswith("grant the controller's service account this verb")


def test_a_cluster_full_of_other_things(plane: ControlPlane) -> None:
    """Neither memory nor events: 10,000 ConfigMaps and as many Secrets of others."""
    kubectl = plane.kubectl
    install_crds(kubectl)
    with process(_account(plane, permissions())) as controller:
        apply(kubectl, "demo", runtime("r"), service("chat", "r"))
        ready(kubectl, "demo", "chat")
        asyncio.run(_fill(plane, 100))
        before, asked = controller.memory(), controller.metric("ome_watch_lists_total")
        told = controller.metric("ome_watch_events_total", "configmaps", "secrets")
        asyncio.run(_fill(plane, 10_000))
        # What is done afterwards is noticed as before.
        apply(kubectl, "demo", service("later", "r"))
        ready(kubectl, "demo", "later")
        assert controller.memory() < before + 5.0
        assert controller.metric("ome_watch_events_total", "configmaps", "secrets") == told == 0
        assert controller.metric("ome_watch_lists_total") == asked


async def _fill(plane: ControlPlane, count: int) -> None:
    """So many more ConfigMaps and Secrets, the latter with our label."""
    client = await connect(str(plane.kubeconfig))
    api = Api(client)
    numbers = iter(range(count))
    labels = {"ome.io/inferenceservice": "chat"}

    async def work() -> None:
        for _ in numbers:
            name = {"generateName": "other-"}
            data = {"key": "x" * 1000}
            await api.create(BY_KIND["ConfigMap"], "demo", {"metadata": name, "data": data})
            secret = {"metadata": {**name, "labels": labels}, "stringData": data}
            await api.create(_SECRET, "demo", secret)

    await asyncio.gather(*(work() for _ in range(16)))
    await client.close()  # type: ignore[no-untyped-call]


def test_a_configuration_that_cannot_be_used(plane: ControlPlane) -> None:
    """The last good one stays in force; at start there is none, and nothing is done until there is."""
    kubectl = plane.kubectl
    install_crds(kubectl)
    config = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "inferenceservice-config"},
        "data": {"deploy": '{"replicas": {"defaultMinReplicas": 0}}'},
    }
    text = "invalid deploy config, replicas.defaultMinReplicas must be > 0, got 0"
    apply(kubectl, "ome", config)
    apply(kubectl, "demo", runtime("r"), service("chat", "r"))
    with running(_account(plane, permissions())) as controller:
        until(lambda: any(text in each for each in controller.controller.problems()))
        assert kubectl("get", "deployments", "-n", "demo", "-o", "name") == ""
        config["data"] = {"deploy": '{"terminationGracePeriodSeconds": 120}'}
        apply(kubectl, "ome", config)
        ready(kubectl, "demo", "chat")
        assert controller.controller.problems() == []
        config["data"] = {"deploy": "{"}
        apply(kubectl, "ome", config)
        until(lambda: controller.controller.problems() != [])
        apply(kubectl, "demo", service("later", "r"))
        ready(kubectl, "demo", "later")
        found = kubectl.json("get", "deployment", "later-engine", "-n", "demo")
        assert found["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] == 120
