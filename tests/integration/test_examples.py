"""Every folder of examples, and what OME renders from it, as a real API server sees it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from controlplane import ControlPlane, Kubectl
from tests.integration.conftest import ROOT, install_crds, ome

Json = dict[str, Any]
EXAMPLES = ROOT / "examples"
NAMES = sorted(path.name for path in EXAMPLES.iterdir() if path.is_dir())
WAIT = "--timeout=60s"

# What the API fills in: nothing else is added, and nothing is dropped or changed.
FORMATS = ['modelFormat.operator="Equal"', "modelFormat.weight=1"]
FORMATS += ['modelFramework.operator="Equal"', "modelFramework.weight=1"]
MODEL = [f"ClusterBaseModel +spec.{each}" for each in FORMATS]
CLUSTER_RUNTIME = [
    f"ClusterServingRuntime +spec.supportedModelFormats[].{each}" for each in FORMATS
]
RUNTIME = [f"ServingRuntime +spec.supportedModelFormats[].{each}" for each in FORMATS]
NAMED_MODEL = [
    f"InferenceService +spec.model.{each}"
    for each in ('apiGroup="ome.io"', 'kind="ClusterBaseModel"')
]
NAMED_RUNTIME = [
    f"InferenceService +spec.runtime.{each}" for each in ('apiGroup="ome.io"', "autoSync=true")
]
NO_KIND = ['InferenceService +spec.runtime.kind="ClusterServingRuntime"']
PORT = 'ServingRuntime +spec.engineConfig.runner.ports[].protocol="TCP"'
DEFAULTS = {
    "llama-3-1-8b-pd": [*MODEL, *CLUSTER_RUNTIME, *NAMED_MODEL, *NAMED_RUNTIME, *NO_KIND],
    "llama-3-2-1b": [PORT, *NAMED_RUNTIME],
    "llama-3-2-3b": [*MODEL, *RUNTIME, *NAMED_MODEL],
    "llama-3-3-70b": [*MODEL, *CLUSTER_RUNTIME, *NAMED_MODEL, *NAMED_RUNTIME, *NO_KIND],
    "merging": [f"Cluster{PORT}", *NAMED_RUNTIME, *NO_KIND],
    "pinned": [*MODEL, *CLUSTER_RUNTIME, *NAMED_MODEL, *NAMED_RUNTIME, *NO_KIND],
    "profile": [*MODEL, *RUNTIME, *NAMED_MODEL, *NAMED_RUNTIME],
}


@pytest.fixture(scope="module")
def control_plane() -> Iterator[ControlPlane]:
    """One where no controller works: what is stored here is the API server's alone."""
    with ControlPlane.start() as plane:
        yield plane


@pytest.fixture(scope="module")
def kubectl(control_plane: ControlPlane) -> Kubectl:
    """kubectl as a user who may do everything."""
    return control_plane.kubectl


@pytest.fixture(scope="module")
def crds(kubectl: Kubectl) -> None:
    """OME's CRDs."""
    install_crds(kubectl)


def _objects(name: str) -> list[Json]:
    files = sorted((EXAMPLES / name).glob("*.yaml"))
    return [each for file in files for each in yaml.safe_load_all(file.read_text()) if each]


def _differences(given: Any, got: Any, path: str = "") -> Iterator[str]:
    """`+path=value` for what the API server added, `-path` for what it dropped or changed."""
    if isinstance(given, dict) and isinstance(got, dict):
        for key in sorted({*given, *got}):
            where = f"{path}.{key}" if path else key
            if key not in given:
                yield f"+{where}={json.dumps(got[key])}"
            elif key not in got:
                yield f"-{where}"
            else:
                yield from _differences(given[key], got[key], where)
    elif isinstance(given, list) and isinstance(got, list) and len(given) == len(got):
        for left, right in zip(given, got, strict=True):
            yield from _differences(left, right, f"{path}[]")
    elif given != got:
        yield f"-{path}"


def _make_namespaces(kubectl: Kubectl, names: set[str]) -> None:
    made = {"apiVersion": "v1", "kind": "Namespace"}
    items = [{**made, "metadata": {"name": name}} for name in sorted(names)]
    kubectl(
        "apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    )


@pytest.fixture
def example(request: pytest.FixtureRequest, kubectl: Kubectl, crds: None) -> Iterator[str]:
    """The name of an example whose objects are in the cluster."""
    name = str(request.param)
    _make_namespaces(
        kubectl, {each["metadata"].get("namespace", "default") for each in _objects(name)}
    )
    kubectl("create", "-f", str(EXAMPLES / name))
    yield name
    kubectl("delete", "-f", str(EXAMPLES / name), "--ignore-not-found")


@pytest.mark.parametrize("example", NAMES, indirect=True)
def test_examples_are_accepted_and_kept(example: str, kubectl: Kubectl) -> None:
    """What is returned is what was given: directives, argsPatch and all else; with the defaults of the API."""
    found: set[str] = set()
    for given in _objects(example):
        kind, metadata = (
            f"{given['kind']}.{given['apiVersion'].rpartition('/')[0]}",
            given["metadata"],
        )
        where = ("-n", metadata.get("namespace", "default"))
        got = kubectl.json("get", kind.rstrip("."), metadata["name"], *where)
        for key in ("spec", "data"):
            found |= {
                f"{given['kind']} {each}"
                for each in _differences(given.get(key), got.get(key), key)
            }
        labels = ("labels", "annotations")
        assert all(metadata.get(key) == got["metadata"].get(key) for key in labels)
    assert sorted(found) == sorted(DEFAULTS[example])


def test_the_chart_holds_the_same_crds(kubectl: Kubectl, crds: None) -> None:
    """The annotation that keeps Helm from deleting them is all that differs."""
    kept = "--dry-run=server", "-o", "json"
    chart = json.loads(kubectl("apply", "-f", str(ROOT / "charts/ome-crd/templates"), *kept))[
        "items"
    ]
    there = kubectl.json("get", "crd")["items"]
    specs = {each["metadata"]["name"]: each["spec"] for each in there}
    assert {each["metadata"]["name"]: each["spec"] for each in chart} == specs
    assert len(specs) == 6


REFUSED = {
    "a mode that isn't one": (
        {"engine": {}, "scalingPolicy": {"mode": "Sometimes"}},
        'spec.scalingPolicy.mode: Unsupported value: "Sometimes": supported values: '
        '"Independent", "Proportional", "Pinned"',
    ),
    "a policy that isn't one": (
        {"engine": {}, "acceleratorSelector": {"policy": "Fastest"}},
        'spec.acceleratorSelector.policy: Unsupported value: "Fastest": supported values: '
        '"BestFit", "Cheapest", "MostCapable", "FirstAvailable"',
    ),
    "a runtime without a name": (
        {"engine": {}, "runtime": {}},
        "spec.runtime.name: Required value",
    ),
    "a number that is text": (
        {"engine": {"minReplicas": "1"}},
        'spec.engine.minReplicas: Invalid value: "string": spec.engine.minReplicas in body must be of type '
        'integer: "string"',
    ),
}


@pytest.mark.parametrize(("spec", "complaint"), REFUSED.values(), ids=REFUSED)
def test_what_the_api_refuses(
    kubectl: Kubectl, crds: None, namespace: str, spec: Json, complaint: str
) -> None:
    service = {
        "apiVersion": "ome.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "bad"},
    }
    told = kubectl.refused(
        "create", "-n", namespace, "-f", "-", stdin=json.dumps({**service, "spec": spec})
    )
    assert complaint in told


def test_directives_survive_apply_and_patch(kubectl: Kubectl, crds: None, namespace: str) -> None:
    """Client-side, server-side and merge patches hand directives to OME as data."""
    engine = {
        "nodeSelector": {"$patch": "replace", "pool": "l40s"},
        "runner": {
            "argsPatch": [{"unset": "--quantization"}],
            "env": [{"name": "NCCL_DEBUG", "$patch": "delete"}],
            "$deleteFromPrimitiveList/args": ["--enable-metrics"],
        },
    }
    service = {
        "apiVersion": "ome.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "chat"},
        "spec": {"engine": engine},
    }
    there = ("-n", namespace)

    def kept() -> Any:
        return kubectl.json("get", "inferenceservice", "chat", *there)["spec"]["engine"]

    for way in (["apply"], ["apply", "--server-side", "--force-conflicts"]):
        kubectl(*way, *there, "-f", "-", stdin=json.dumps(service))
        assert kept() == engine
    engine["runner"]["argsPatch"].append({"append": ["--enable-metrics"]})  # type: ignore[index]
    patch = json.dumps(
        {"spec": {"engine": {"runner": {"argsPatch": engine["runner"]["argsPatch"]}}}}
    )  # type: ignore[index]
    kubectl("patch", "inferenceservice", "chat", *there, "--type=merge", "-p", patch)
    assert kept() == engine


# The Deployments of each example; `pinned` shows services that are refused beside one that isn't.
RENDERED = {
    "llama-3-1-8b-pd": ["decoder", "engine", "router"],
    "llama-3-2-1b": ["engine"],
    "llama-3-2-3b": ["engine"],
    "llama-3-3-70b": ["engine"],
    "merging": ["engine"],
    "pinned": ["engine"],
    "profile": ["engine"],
}


@pytest.mark.parametrize("example", NAMES, indirect=True)
def test_what_ome_renders_runs(example: str, kubectl: Kubectl) -> None:
    """The API server takes the objects, and the Deployments become ready on nodes that hold the model."""
    rendered = ome(
        "render", "-f", str(EXAMPLES / example), "--without-api=monitoring.coreos.com/v1"
    )
    objects = [each for each in yaml.safe_load_all(rendered) if each]
    deployments = [each for each in objects if each["kind"] == "Deployment"]
    names = sorted(each["metadata"]["name"].rpartition("-")[2] for each in deployments)
    assert names == RENDERED[example]
    kubectl("apply", "-f", "-", stdin=rendered)
    for each in deployments:
        where, pod = each["metadata"]["namespace"], each["spec"]["template"]["spec"]
        for label, value in pod.get("nodeSelector", {}).items():
            if not label.startswith("nvidia.com/"):
                kubectl("label", "nodes", "--all", "--overwrite", f"{label}={value}")
        kubectl("rollout", "status", "-n", where, f"deployment/{each['metadata']['name']}", WAIT)
    kubectl("delete", "--cascade=foreground", WAIT, "-f", "-", stdin=rendered)
