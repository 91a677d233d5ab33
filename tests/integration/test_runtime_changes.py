"""What becomes of services when runtimes change."""

from __future__ import annotations

from typing import Any

from objects import (
    apply,
    conditions,
    deployment,
    events,
    image,
    model,
    ready,
    runtime,
    service,
    supports,
)
from running import Running

from conftest import until
from controlplane import Kubectl


def _with_image(name: str, tag: str, **spec: Any) -> dict[str, Any]:
    made = runtime(name, **spec)
    made["spec"]["engineConfig"]["runner"]["image"] = f"engine:{tag}"
    return made


def _child(name: str, parent: str) -> dict[str, Any]:
    made = runtime(name, engineConfig={"labels": {"layer": "child"}})
    made["metadata"]["annotations"] = {"ome.io/inherit-from": parent}
    return made


def test_an_edit_reaches_those_who_name_or_inherit(
    kubectl: Kubectl, namespace: str, ome_controller: Running
) -> None:
    root, child = f"{namespace}-root", f"{namespace}-child"
    pinned = service("pinned", root)
    pinned["spec"]["runtime"]["autoSync"] = False
    apply(kubectl, namespace, _with_image(root, "v1"), _child(child, root))
    apply(kubectl, namespace, service("named", root), service("inherits", child), pinned)
    ready(kubectl, namespace, "named", "inherits", "pinned")
    held = kubectl.json("get", "isvc", "pinned", "-n", namespace)["status"]["pinnedRevisionName"]
    assert held.startswith(f"cr-{root}-")
    apply(kubectl, namespace, _with_image(root, "v2"))
    for name in ("named", "inherits"):
        until(lambda name=name: image(kubectl, namespace, f"{name}-engine") == "engine:v2")
    until(lambda: "RuntimeDrifted" in conditions(kubectl, namespace, "pinned"))
    drift = conditions(kubectl, namespace, "pinned")["RuntimeDrifted"]
    assert (drift["status"], drift["reason"]) == ("True", "RevisionMismatch")
    assert image(kubectl, namespace, "pinned-engine") == "engine:v1"
    before = deployment(kubectl, namespace, "named-engine")["metadata"]["generation"]
    kubectl("annotate", "isvc", "-n", namespace, "pinned", "named", "ome.io/runtime-sync=go")
    until(lambda: image(kubectl, namespace, "pinned-engine") == "engine:v2")
    until(lambda: "RuntimeDrifted" not in conditions(kubectl, namespace, "pinned"))
    status = kubectl.json("get", "isvc", "pinned", "-n", namespace)["status"]
    assert status["lastRuntimeSyncToken"] == "go"
    assert status["pinnedRevisionName"] != held
    ome_controller.settle()
    # An annotation that steers OME reaches no pod.
    assert deployment(kubectl, namespace, "named-engine")["metadata"]["generation"] == before


def test_a_chosen_runtime_is_kept_until_its_trigger(
    kubectl: Kubectl, namespace: str, ome_controller: Running
) -> None:
    name = f"{namespace}-model"
    first, better = f"{namespace}-a", f"{namespace}-b"
    architecture = f"Arch{namespace.replace('-', '')}"
    supported = supports(architecture)
    chosen = service("chat", "")
    chosen["spec"] = {"model": {"name": name}, "engine": {"minReplicas": 1}}
    apply(kubectl, namespace, model(name, modelArchitecture=architecture))
    apply(kubectl, namespace, _with_image(first, "v1", supportedModelFormats=supported), chosen)
    label = f"models.ome.io/clusterbasemodel.{name}=Ready"
    kubectl("label", "node", "cpu-0", label)
    try:
        ready(kubectl, namespace, "chat")
        until(lambda: image(kubectl, namespace, "chat-engine") == "engine:v1")
        ome_controller.settle()
        at = deployment(kubectl, namespace, "chat-engine")["metadata"]["generation"]
        apply(
            kubectl,
            namespace,
            _with_image(first, "v2", supportedModelFormats=supported),
            _with_image(better, "v3", supportedModelFormats=supports(architecture, 5)),
        )
        ome_controller.settle()
        ome_controller.resync()
        kubectl("scale", "-n", namespace, "deployment/chat-engine", "--replicas=2")
        ome_controller.settle()
        found = deployment(kubectl, namespace, "chat-engine")
        runner = found["spec"]["template"]["spec"]["containers"][0]
        assert found["metadata"]["labels"]["serving-runtime"] == first
        assert (runner["image"], found["spec"]["replicas"]) == ("engine:v1", 2)
        assert found["metadata"]["generation"] == at + 1
        kubectl("label", "isvc", "-n", namespace, "chat", "team=a")
        until(lambda: image(kubectl, namespace, "chat-engine") == "engine:v3")

        def recorded() -> str:
            status = kubectl.json("get", "isvc", "chat", "-n", namespace)["status"]
            return str(status["runtimeSelection"]["name"])

        until(lambda: recorded() == better)
    finally:
        kubectl("label", "node", "cpu-0", f"models.ome.io/clusterbasemodel.{name}-")


def test_a_runtime_that_goes_and_comes_back(
    kubectl: Kubectl, namespace: str, ome_controller: Running
) -> None:
    name = f"{namespace}-gone"
    apply(kubectl, namespace, _with_image(name, "v1"), service("chat", name))
    ready(kubectl, namespace, "chat")
    at = deployment(kubectl, namespace, "chat-engine")["metadata"]["generation"]
    kubectl("delete", "clusterservingruntime", name)
    until(lambda: "RuntimeReady" in conditions(kubectl, namespace, "chat"))
    text = f"runtime {name} not found in namespace {namespace} or at cluster scope"
    found = conditions(kubectl, namespace, "chat")
    told = {key: found["RuntimeReady"][key] for key in ("status", "severity", "reason", "message")}
    assert told == {
        "status": "False",
        "severity": "Info",
        "reason": "RuntimeNotFound",
        "message": text,
    }
    assert found["Ready"]["status"] == "True"
    assert events(kubectl, namespace, "chat", "RuntimeNotFound") == [text]
    ome_controller.settle()
    before = ome_controller.writes_in(namespace)
    ome_controller.resync()
    assert ome_controller.writes_in(namespace) == before
    assert deployment(kubectl, namespace, "chat-engine")["metadata"]["generation"] == at
    apply(kubectl, namespace, _with_image(name, "v2"))
    until(lambda: conditions(kubectl, namespace, "chat")["RuntimeReady"]["status"] == "True")
    resolved = conditions(kubectl, namespace, "chat")["RuntimeReady"]
    assert (resolved["reason"], resolved.get("message")) == ("RuntimeResolved", None)
    until(lambda: image(kubectl, namespace, "chat-engine") == "engine:v2")
    apply(kubectl, namespace, _with_image(name, "v3", disabled=True))
    until(lambda: bool(events(kubectl, namespace, "chat", "RuntimeValidationError")))
    text = f"Runtime {name} failed validation: cluster-scoped runtime {name} is disabled"
    assert events(kubectl, namespace, "chat", "RuntimeValidationError") == [text]
    assert image(kubectl, namespace, "chat-engine") == "engine:v2"
    assert conditions(kubectl, namespace, "chat")["Ready"]["status"] == "True"


def test_a_first_status_of_a_refusal(
    kubectl: Kubectl, namespace: str, ome_controller: Running
) -> None:
    """Also for a runtime that stands in another namespace."""
    local = runtime("elsewhere")
    local["kind"] = "ServingRuntime"
    apply(kubectl, "ome", local)
    apply(kubectl, namespace, service("chat", "elsewhere"))
    until(lambda: "RuntimeReady" in conditions(kubectl, namespace, "chat"))
    found = conditions(kubectl, namespace, "chat")
    text = f"runtime elsewhere not found in namespace {namespace} or at cluster scope"
    assert (found["RuntimeReady"]["reason"], found["RuntimeReady"]["message"]) == (
        "RuntimeNotFound",
        text,
    )
    assert found["Ready"]["status"] == "False"
    raw = kubectl.json("get", "isvc", "chat", "-n", namespace)
    assert raw["status"]["observedGeneration"] == 1
    kubectl("delete", "isvc", "chat", "-n", namespace, "--timeout=30s")


def test_a_broken_chain_is_told_on_the_runtime(
    kubectl: Kubectl, namespace: str, ome_controller: Running
) -> None:
    root, child = f"{namespace}-root", f"{namespace}-child"
    apply(kubectl, namespace, _child(child, root))

    def status() -> dict[str, Any]:
        found = kubectl.json("get", "clusterservingruntime", child)
        return dict(found.get("status") or {})

    until(lambda: bool(status()))
    (told,) = status()["conditions"]
    assert (told["type"], told["status"], told["reason"]) == (
        "InheritanceReady",
        "False",
        "ParentNotFound",
    )
    assert events(kubectl, "default", child, "ParentNotFound") == [told["message"]]
    apply(kubectl, namespace, _with_image(root, "v1"))
    until(lambda: status().get("inheritanceChain") == [root, child])
    assert status()["conditions"][0]["reason"] == "Resolved"


def test_a_malformed_placeholder(kubectl: Kubectl, namespace: str, ome_controller: Running) -> None:
    name = f"{namespace}-odd"
    apply(kubectl, namespace, _with_image(name, "v1"), service("chat", name))
    ready(kubectl, namespace, "chat")
    odd = _with_image(name, "v2")
    odd["spec"]["engineConfig"]["runner"]["args"] = ["--name={{.Labels.a-b}}"]
    apply(kubectl, namespace, odd)
    until(lambda: bool(events(kubectl, namespace, "chat", "InternalError")))
    assert "{{.Labels.a-b}}" in events(kubectl, namespace, "chat", "InternalError")[0]
    assert image(kubectl, namespace, "chat-engine") == "engine:v1"
