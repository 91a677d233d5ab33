"""The two documents that define the system: their manifests render to exactly what they say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ome.engines.discovery import discover
from ome.engines.engines import Engines
from ome.planning.plan import Plan
from ome.planning.planner import plan
from ome.snapshot import Snapshot
from ome.sources import load, read_paths

EXAMPLES = Path(__file__).parents[2] / "examples"


def render(example: str, engines: Engines) -> tuple[Plan, dict[str, Any]]:
    loaded = load(read_paths([str(EXAMPLES / example)]))
    assert not loaded.warnings
    snapshot = Snapshot.of(loaded.objects)
    (service,) = snapshot.services()
    rendered = plan(snapshot, service, engines)
    return rendered, {
        item["kind"]: item for item in rendered.objects() if item["kind"] != "Service"
    }


@pytest.fixture(params=["no engine plugin", "the installed engine plugins"])
def engines(request: pytest.FixtureRequest) -> Engines:
    return Engines() if request.param == "no engine plugin" else discover()


def test_the_70b_service_on_its_class(engines: Engines) -> None:
    rendered, objects = render("llama-3-3-70b", engines)
    deployment = objects["Deployment"]
    assert deployment["metadata"]["name"] == "llama-3-3-70b-instruct-engine"
    assert deployment["metadata"]["namespace"] == "llama-demo"
    pod = deployment["spec"]["template"]["spec"]
    (runner,) = pod["containers"]
    assert runner["args"] == [
        "--host=0.0.0.0",
        "--port=8080",
        "--model-path=$(MODEL_PATH)",
        "--tp-size=4",
        "--pp-size=2",
        "--mem-frac=0.85",
    ]
    assert runner["command"] == ["python3", "-m", "sglang.launch_server"]
    assert runner["env"] == [
        {"name": "MODEL_PATH", "value": "/raid/models/meta/llama-3-3-70b-instruct"}
    ]
    assert runner["volumeMounts"] == [
        {"name": "dshm", "mountPath": "/dev/shm"},
        {
            "name": "llama-3-3-70b-instruct",
            "mountPath": "/raid/models/meta/llama-3-3-70b-instruct",
            "readOnly": True,
        },
    ]
    assert pod["nodeSelector"] == {
        "models.ome.io/clusterbasemodel.llama-3-3-70b-instruct": "Ready",
        "nvidia.com/gpu.product": "NVIDIA-L40S",
    }
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    assert labels == {
        "app": "llama-3-3-70b-instruct-engine",
        "base-model-name": "llama-3-3-70b-instruct",
        "base-model-size": "SMALL",
        "base-model-type": "Serving",
        "base-model-vendor": "meta",
        "component": "engine",
        "fine-tuned-serving": "false",
        "ome.io/inferenceservice": "llama-3-3-70b-instruct",
        "serving-runtime": "sglang-llama-3-3-70b",
    }
    assert [
        item["metadata"]["name"] for item in rendered.objects() if item["kind"] == "Service"
    ] == [
        "llama-3-3-70b-instruct-engine",
        "llama-3-3-70b-instruct",
    ]
    assert not [each for each in rendered.warnings if not each.is_note]


def test_the_order_of_the_objects(engines: Engines) -> None:
    rendered, _ = render("llama-3-3-70b", engines)
    assert [item["kind"] for item in rendered.objects()] == [
        "Deployment",
        "Service",
        "PodMonitor",
        "HorizontalPodAutoscaler",
        "Service",
    ]


def test_a_service_without_a_model(engines: Engines) -> None:
    _, objects = render("llama-3-2-1b", engines)
    pod = objects["Deployment"]["spec"]["template"]["spec"]
    (runner,) = pod["containers"]
    assert runner["args"][-1] == "--served-model-name=llama-3-2-1b-instruct"
    assert [item["name"] for item in runner["env"]] == [
        "MODEL_PATH",
        "HF_TOKEN",
        "PARALLELISM_SIZE",
    ]
    assert "nodeSelector" not in pod
    assert [volume["name"] for volume in pod["volumes"]] == ["dshm"]


def test_a_service_that_leaves_the_choice_to_ome(engines: Engines) -> None:
    rendered, objects = render("llama-3-2-3b", engines)
    assert [warning.message for warning in rendered.warnings if not warning.is_note] == [
        "Runtime sglang-llama-3-2-3b will be auto-selected for model llama-3-2-3b-instruct"
    ]
    labels = objects["Deployment"]["metadata"]["labels"]
    assert labels["serving-runtime"] == "sglang-llama-3-2-3b"
    (runner,) = objects["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert runner["args"] == [
        "--host=0.0.0.0",
        "--port=8080",
        "--model-path=$(MODEL_PATH)",
        "--served-model-name=llama-3-2-3b-instruct",
        "--tp-size=1",
        "--mem-frac=0.9",
    ]
    assert {"name": "PARALLELISM_SIZE", "value": "1"} in runner["env"]
    assert runner["volumeMounts"][0] == {"name": "dshm", "mountPath": "/dev/shm"}
