"""The commands of OME's two documents on serving runtimes, run as a user runs them, and what they print.

Each is written as it stands there. What isn't run here waits for what brings it: `LATER`.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from objects import conditions, deployment
from running import Running

from conftest import ROOT, until
from controlplane import ControlPlaneError, Kubectl

NAMESPACE = "llama-demo"
ONE_B = "llama-3-2-1b-instruct"

# Commands and messages of the documents that need more than the controller, and what that is.
LATER = {
    "Warning: runtime … does not declare support …": "the admission webhook",
    "Warning: Runtime sglang-llama-3-2-3b will be auto-selected …": "the admission webhook",
    "admission webhook … denied the request: …": "the admission webhook",
    "unknown accelerator classes referenced in AcceleratorRequirements": "the admission webhook",
    "different priorities assigned for the model format": "the admission webhook",
    "kubectl ome runtime effective … -n llama-demo": "kubectl ome with a cluster as its source",
    "kubectl ome runtime explain --isvc …": "kubectl ome with a cluster as its source",
    "helm install": "the charts",
    "kubectl apply -k config/runtimes": "a checkout of OME's catalog",
}


def _documents(*paths: str) -> list[dict[str, Any]]:
    """The objects of examples."""
    texts = [(ROOT / "examples" / path).read_text() for path in paths]
    return [each for text in texts for each in yaml.safe_load_all(text) if each]


def _seventy_b() -> list[dict[str, Any]]:
    """The objects of "Per-accelerator configuration"."""
    return _documents(*(f"llama-3-3-70b/{name}.yaml" for name in ("cluster", "runtime", "service")))


def _one_b() -> list[dict[str, Any]]:
    """The model and the runtime of "Reference a runtime explicitly", as far as it tells them."""
    framework = {"name": "transformers", "version": "4.45.0.dev0"}
    model_format = {"name": "safetensors", "version": "1.0.0"}
    entry = {
        "modelFormat": model_format,
        "modelFramework": framework,
        "modelArchitecture": "LlamaForCausalLM",
        "autoSelect": False,
    }
    amounts = {"cpu": "10", "memory": "30Gi", "nvidia.com/gpu": "1"}
    runner = {
        "name": "ome-container",
        "image": "sglang:v0.5.5.post3",
        "command": ["python3", "-m", "sglang.launch_server", "--port=8080"],
        "args": ["--model-path=$(MODEL_PATH)", "--tp-size=1"],
        "ports": [{"containerPort": 8080, "name": "http1"}],
        "resources": {"requests": amounts, "limits": amounts},
    }
    runtime = {
        "apiVersion": "ome.io/v1beta1",
        "kind": "ClusterServingRuntime",
        "metadata": {"name": f"srt-{ONE_B}"},
        "spec": {
            "disabled": False,
            "supportedModelFormats": [entry],
            "modelSizeRange": {"min": "500M", "max": "2B"},
            "engineConfig": {"runner": runner},
        },
    }
    model = {
        "apiVersion": "ome.io/v1beta1",
        "kind": "ClusterBaseModel",
        "metadata": {"name": ONE_B},
        "spec": {
            "storage": {"storageUri": "hf://meta-llama/Llama-3.2-1B", "path": "/raid/models/1b"},
            "modelFormat": model_format,
            "modelFramework": framework,
            "modelArchitecture": "LlamaForCausalLM",
        },
    }
    return [model, runtime]


class Shell:
    """Runs a document's commands in a directory with its files."""

    def __init__(self, kubectl: Kubectl, folder: Path) -> None:
        self._kubectl = kubectl
        self._folder = folder

    def file(self, name: str, *objects: dict[str, Any]) -> None:
        """Write a file that commands name."""
        (self._folder / name).write_text(yaml.safe_dump_all(objects))

    def __call__(self, command: str) -> str:
        """What a command prints, without trailing spaces."""
        program, *args = shlex.split(command)
        assert program == "kubectl"
        args = [str(self._folder / arg) if arg.endswith(".yaml") else arg for arg in args]
        done = self._kubectl.run(*args)
        if done.returncode:
            raise ControlPlaneError(done.stderr)
        lines = (done.stdout + done.stderr).splitlines()
        return "\n".join(line.rstrip() for line in lines)


@pytest.fixture
def shell(kubectl: Kubectl, ome_controller: Running, tmp_path: Path) -> Iterator[Shell]:
    """A shell in a cluster whose GPU nodes have the documents' models."""
    names = [ONE_B, "llama-3-2-3b-instruct", "llama-3-3-70b-instruct"]
    labels = [f"models.ome.io/clusterbasemodel.{name}=Ready" for name in names]
    kubectl("label", "node", "h100-0", "l40s-0", *labels)
    run = Shell(kubectl, tmp_path)
    assert run(f"kubectl create namespace {NAMESPACE}") == f"namespace/{NAMESPACE} created"
    yield run
    kubectl("label", "node", "h100-0", "l40s-0", *(f"{each.partition('=')[0]}-" for each in labels))
    kubectl("delete", "namespace", NAMESPACE, "--timeout=60s")
    kubectl("delete", "clusterservingruntimes,clusterbasemodels,acceleratorclasses", "--all")


def test_reference_a_runtime_explicitly(
    shell: Shell, kubectl: Kubectl, ome_controller: Running
) -> None:
    shell.file("objects.yaml", *_one_b())
    shell("kubectl apply -f objects.yaml")
    assert shell(
        "kubectl get clusterbasemodel llama-3-2-1b-instruct "
        "-o custom-columns=ARCHITECTURE:.spec.modelArchitecture,FORMAT:.spec.modelFormat.name,"
        "FRAMEWORK:.spec.modelFramework.name,VERSION:.spec.modelFramework.version"
    ) == (
        "ARCHITECTURE       FORMAT        FRAMEWORK      VERSION\n"
        "LlamaForCausalLM   safetensors   transformers   4.45.0.dev0"
    )
    columns = (
        "NAME:.metadata.name,DISABLED:.spec.disabled,"
        "ARCHITECTURE:.spec.supportedModelFormats[*].modelArchitecture,"
        "FORMAT:.spec.supportedModelFormats[*].modelFormat.name,"
        "FRAMEWORK:.spec.supportedModelFormats[*].modelFramework.name,"
        "VERSION:.spec.supportedModelFormats[*].modelFramework.version,"
        "MIN:.spec.modelSizeRange.min,MAX:.spec.modelSizeRange.max"
    )
    assert shell(
        f"kubectl get clusterservingruntime srt-llama-3-2-1b-instruct -o 'custom-columns={columns}'"
    ) == (
        "NAME                        DISABLED   ARCHITECTURE       FORMAT        FRAMEWORK      "
        "VERSION       MIN    MAX\n"
        "srt-llama-3-2-1b-instruct   false      LlamaForCausalLM   safetensors   transformers   "
        "4.45.0.dev0   500M   2B"
    )
    shell.file(
        "isvc.yaml",
        {
            "apiVersion": "ome.io/v1beta1",
            "kind": "InferenceService",
            "metadata": {"name": ONE_B, "namespace": NAMESPACE},
            "spec": {
                "model": {"name": ONE_B},
                "runtime": {"name": f"srt-{ONE_B}"},
                "engine": {"minReplicas": 1, "maxReplicas": 1},
            },
        },
    )
    assert (
        shell("kubectl apply -f isvc.yaml")
        == "inferenceservice.ome.io/llama-3-2-1b-instruct created"
    )
    assert (
        shell(
            "kubectl wait --for=condition=Ready inferenceservice/llama-3-2-1b-instruct -n llama-demo "
            "--timeout=30m"
        )
        == "inferenceservice.ome.io/llama-3-2-1b-instruct condition met"
    )
    assert shell(
        "kubectl get pods -n llama-demo -l ome.io/inferenceservice=llama-3-2-1b-instruct "
        "-o custom-columns=COMPONENT:.metadata.labels.component,RUNTIME:.metadata.labels.serving-runtime"
    ) == ("COMPONENT   RUNTIME\nengine      srt-llama-3-2-1b-instruct")
    row = shell("kubectl get inferenceservice -n llama-demo").splitlines()[1].split()
    url = f"http://{ONE_B}.{NAMESPACE}.svc.cluster.local:8080"
    assert row[:5] == [ONE_B, url, "True", ONE_B, f"srt-{ONE_B}"]
    advisory = (
        "kubectl get events -n llama-demo --field-selector "
        "involvedObject.name=llama-3-2-1b-instruct,reason=RuntimeCompatibilityAdvisory"
    )
    assert shell(advisory) == "No resources found in llama-demo namespace."
    _the_runtime_goes_missing(shell, kubectl)
    _the_model_is_another_version(shell, kubectl, advisory)
    assert (
        shell("kubectl delete inferenceservice llama-3-2-1b-instruct -n llama-demo")
        == 'inferenceservice.ome.io "llama-3-2-1b-instruct" deleted from llama-demo namespace'
    )
    until(lambda: not kubectl.json("get", "all", "-n", NAMESPACE)["items"])
    assert kubectl("get", "clusterbasemodel", ONE_B, "-o", "name")
    assert kubectl("get", "clusterservingruntime", f"srt-{ONE_B}", "-o", "name")


def _the_runtime_goes_missing(shell: Shell, kubectl: Kubectl) -> None:
    """What happens when the runtime was deleted, and comes back."""
    shell("kubectl delete clusterservingruntime srt-llama-3-2-1b-instruct")
    until(lambda: "RuntimeReady" in conditions(kubectl, NAMESPACE, ONE_B))
    columns = ",".join(
        f'{name}:.status.conditions[?(@.type=="RuntimeReady")].{name.lower()}'
        for name in ("STATUS", "REASON", "MESSAGE")
    )
    shown = f"kubectl get inferenceservice llama-3-2-1b-instruct -n llama-demo -o 'custom-columns={columns}'"
    assert shell(shown) == (
        "STATUS   REASON            MESSAGE\n"
        "False    RuntimeNotFound   runtime srt-llama-3-2-1b-instruct not found in namespace llama-demo or "
        "at cluster scope"
    )
    found = conditions(kubectl, NAMESPACE, ONE_B)
    assert found["Ready"]["status"] == "True"
    shell("kubectl apply -f objects.yaml")
    until(lambda: shell(shown).splitlines()[1].split() == ["True", "RuntimeResolved", "<none>"])


def _the_model_is_another_version(shell: Shell, kubectl: Kubectl, advisory: str) -> None:
    """The text of the warning, as the event tells it."""
    patch = json.dumps({"spec": {"modelFramework": {"version": "4.46.0"}}})
    kubectl("patch", "clusterbasemodel", ONE_B, "--type=merge", "-p", patch)
    # A model's change concerns nobody who is served; the service's own does.
    kubectl("label", "isvc", ONE_B, "-n", NAMESPACE, "team=a")
    until(lambda: ONE_B in shell(advisory))
    text = (
        f"Runtime srt-{ONE_B} does not declare support for model {ONE_B} (runtime srt-{ONE_B} does not "
        "support model safetensors: model format 'mt:safetensors:1.0.0:LlamaForCausalLM:transformers:4.46.0' "
        "not in supported formats: framework version mismatch (model=4.46.0, runtime=4.45.0.dev0)); "
        "proceeding because the runtime was named explicitly"
    )
    assert text in shell(advisory)


def test_serving_runtimes(shell: Shell, kubectl: Kubectl, ome_controller: Running) -> None:
    objects = {each["kind"]: each for each in _documents("llama-3-2-3b/automatic.yaml")}
    shell.file("model.yaml", objects["ClusterBaseModel"])
    shell("kubectl apply -f model.yaml")
    shell.file("runtime.yaml", objects["ServingRuntime"])
    created = "servingruntime.ome.io/sglang-llama-3-2-3b created"
    assert shell("kubectl apply -f runtime.yaml") == created
    columns = (
        "NAME:.metadata.name,FORMAT:.spec.supportedModelFormats[*].modelFormat.name,"
        "ARCHITECTURE:.spec.supportedModelFormats[*].modelArchitecture,"
        "MIN:.spec.modelSizeRange.min,MAX:.spec.modelSizeRange.max"
    )
    assert shell(f"kubectl get servingruntimes -n llama-demo -o 'custom-columns={columns}'") == (
        "NAME                  FORMAT        ARCHITECTURE       MIN   MAX\n"
        "sglang-llama-3-2-3b   safetensors   LlamaForCausalLM   2B    4B"
    )
    shell.file("isvc.yaml", objects["InferenceService"])
    created = "inferenceservice.ome.io/llama-3-2-3b-instruct created"
    assert shell("kubectl apply -f isvc.yaml") == created
    shell(
        "kubectl wait --for=condition=Ready isvc/llama-3-2-3b-instruct -n llama-demo --timeout=60s"
    )
    assert shell(
        "kubectl get deployments -n llama-demo -l ome.io/inferenceservice=llama-3-2-3b-instruct "
        "-o 'custom-columns=NAME:.metadata.name,RUNTIME:.metadata.labels.serving-runtime'"
    ) == (
        "NAME                           RUNTIME\nllama-3-2-3b-instruct-engine   sglang-llama-3-2-3b"
    )


def test_serving_runtimes_per_accelerator(
    shell: Shell, kubectl: Kubectl, ome_controller: Running
) -> None:
    objects = _seventy_b()
    service = [each for each in objects if each["kind"] == "InferenceService"]
    runtime = [each for each in objects if each["kind"] == "ClusterServingRuntime"]
    rest = [each for each in objects if each not in service and each not in runtime]
    shell.file("rest.yaml", *rest)
    shell("kubectl apply -f rest.yaml")
    shell.file("runtime-70b.yaml", *runtime)
    created = "clusterservingruntime.ome.io/sglang-llama-3-3-70b created"
    assert shell("kubectl apply -f runtime-70b.yaml") == created
    shell.file("isvc-70b.yaml", *service)
    created = "inferenceservice.ome.io/llama-3-3-70b-instruct created"
    assert shell("kubectl apply -f isvc-70b.yaml") == created
    until(lambda: "engine" in kubectl("get", "deployments", "-n", NAMESPACE, "-o", "name"))
    flags = (
        "kubectl get deployment llama-3-3-70b-instruct-engine -n llama-demo -o jsonpath='{range "
        '.spec.template.spec.containers[?(@.name=="ome-container")].args[*]}{@}{"\\n"}{end}\''
    )
    assert shell(flags) == (
        "--host=0.0.0.0\n--port=8080\n--model-path=$(MODEL_PATH)\n--tp-size=4\n--pp-size=2\n--mem-frac=0.85"
    )
    classes = kubectl.json("get", "acceleratorclass", "nvidia-l40s")
    until(lambda: "status" in kubectl.json("get", "acceleratorclass", "nvidia-l40s"))
    classes = kubectl.json("get", "acceleratorclass", "nvidia-l40s")["status"]
    assert (classes["nodes"], classes["availableNodes"]) == (["l40s-0"], 1)


def test_a_class_that_is_missing(shell: Shell, kubectl: Kubectl, ome_controller: Running) -> None:
    """The document's `AcceleratorClassError` event; the workload comes when the class does."""
    objects = _seventy_b()
    classes = [each for each in objects if each["kind"] == "AcceleratorClass"]
    assert classes
    shell.file("objects.yaml", *(each for each in objects if each not in classes))
    shell("kubectl apply -f objects.yaml")
    name = "llama-3-3-70b-instruct"
    text = "Failed to get accelerator class for engine: accelerator class nvidia-l40s not found at cluster scope"
    fields = f"involvedObject.name={name},reason=AcceleratorClassError"

    def told() -> list[str]:
        found = kubectl.json("get", "events", "-n", NAMESPACE, "--field-selector", fields)
        return [each["message"] for each in found["items"]]

    until(lambda: told() == [text])
    assert kubectl("get", "deployments", "-n", NAMESPACE, "-o", "name") == ""
    shell.file("classes.yaml", *classes)
    shell("kubectl apply -f classes.yaml")
    until(lambda: "engine" in kubectl("get", "deployments", "-n", NAMESPACE, "-o", "name"))
    assert deployment(kubectl, NAMESPACE, f"{name}-engine")
