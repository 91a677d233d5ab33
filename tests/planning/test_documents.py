"""The documents on inheritance, on revisions and on accelerators, walked through on the examples."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ome.api import ApiObject, parse
from ome.engines.engines import Engines
from ome.engines.guard import copy_json
from ome.planning.plan import Hold, Plan
from ome.planning.planner import plan
from ome.planning.runtimes import report_runtime
from ome.snapshot import Revision, Snapshot, read_revision
from ome.sources import load, read_paths
from ome.testing.builders import container, deployment

EXAMPLES = Path(__file__).parents[2] / "examples"
Json = dict[str, Any]


class Cluster:
    """Plays the API server for one service: applies changes, and writes what plans ask for."""

    def __init__(self, example: str) -> None:
        loaded = load(read_paths([str(EXAMPLES / example)]))
        self.raw: dict[str, Json] = {
            f"{item.KIND}/{item.name}": copy_json(item.raw) for item in loaded.objects
        }
        (self.target,) = (name for name in self.raw if name.startswith("InferenceService/"))
        self.revisions: dict[str, Revision] = {}

    @property
    def service(self) -> Json:
        """The service, to be changed."""
        return self.raw[self.target]

    def snapshot(self) -> Snapshot:
        items: list[ApiObject] = [parse(copy_json(raw)) for raw in self.raw.values()]
        return Snapshot.of(items, revisions=self.revisions.values())

    def reconcile(self) -> Plan:
        """Plan the service, and store its revisions and status."""
        snapshot = self.snapshot()
        (service,) = snapshot.services()
        rendered = plan(snapshot, service, Engines())
        for effect in rendered.effects:
            revision = read_revision(effect)
            assert revision is not None
            self.revisions[revision.name] = revision
        self.service.setdefault("status", {}).update(rendered.status)
        return rendered

    def annotate(self, name: str, **annotations: str) -> None:
        found = self.raw[name]["metadata"].setdefault("annotations", {})
        found |= {f"ome.io/{key.replace('_', '-')}": value for key, value in annotations.items()}


CHILD = "ServingRuntime/sglang-llama-3-2-3b"
PROFILE = "ClusterServingRuntime/sglang-profile"


def test_a_child_runs_what_the_profile_and_it_say() -> None:
    cluster = Cluster("profile")
    runner = container(cluster.reconcile())
    assert runner["image"] == "docker.io/lmsysorg/sglang:v0.5.5.post3-cu129-amd64"
    assert [*runner["command"], *runner["args"]] == [
        "python3",
        "-m",
        "sglang.launch_server",
        "--host=0.0.0.0",
        "--port=8080",
        "--model-path=$(MODEL_PATH)",
        "--served-model-name=llama-3-2-3b-instruct",
        "--tp-size=1",
        "--mem-frac=0.9",
    ]
    snapshot = cluster.snapshot()
    child: Any = snapshot.runtime("llama-demo", "sglang-llama-3-2-3b")
    status = report_runtime(snapshot, child).status
    assert status["inheritanceChain"] == ["sglang-profile", "sglang-llama-3-2-3b"]
    assert status["conditions"][0]["reason"] == "Resolved"


def test_a_child_of_a_disabled_profile_stays_disabled_unless_it_says_otherwise() -> None:
    cluster = Cluster("profile")
    del cluster.raw[CHILD]["spec"]["disabled"]
    rendered = cluster.reconcile()
    assert isinstance(rendered.actions["engine"], Hold)
    assert rendered.denial == (
        "runtime sglang-llama-3-2-3b does not support model llama-3-2-3b-instruct: namespace-scoped "
        "runtime sglang-llama-3-2-3b is disabled"
    )


BROKEN = "Runtime sglang-llama-3-2-3b does not support model llama-3-2-3b-instruct: "
GONE = 'inherit-from parent "sglang-profile" not found (chain so far: [sglang-llama-3-2-3b])'


@pytest.mark.parametrize(
    ("change", "reason", "message"),
    [
        ({}, "RuntimeValidationError", BROKEN + GONE),
        (
            {"autoSync": False},
            "RuntimePinError",
            f"resolve live runtime sglang-llama-3-2-3b: {GONE}",
        ),
        ({"model": None}, "RuntimeFetchError", GONE),
    ],
)
def test_a_deleted_parent_holds_the_workload(change: Json, reason: str, message: str) -> None:
    cluster = Cluster("profile")
    parent = cluster.raw.pop(PROFILE)
    if "model" in change:
        del cluster.service["spec"]["model"]
    else:
        cluster.service["spec"]["runtime"] |= change
    rendered = cluster.reconcile()
    assert isinstance(rendered.actions["engine"], Hold)
    assert [(event.reason, event.message) for event in rendered.events] == [(reason, message)]
    cluster.raw[PROFILE] = parent
    assert container(cluster.reconcile())["args"] == ["--tp-size=1", "--mem-frac=0.9"]


def test_a_service_is_pinned_rolled_forward_and_back() -> None:
    cluster = Cluster("profile")
    cluster.service["spec"]["runtime"]["autoSync"] = False
    rendered = cluster.reconcile()
    first = cluster.service["status"]["pinnedRevisionName"]
    prefix = "r-llama-demo-sglang-llama-3-2-3b-"
    assert first.startswith(prefix)
    assert "RuntimeDrifted" not in conditions(rendered)

    cluster.raw[CHILD]["spec"]["engineConfig"]["runner"]["args"] = [
        "--tp-size=1",
        "--mem-frac=0.85",
    ]
    rendered = cluster.reconcile()
    assert conditions(rendered)["RuntimeDrifted"] == (
        "RevisionMismatch",
        f"pinned {first}, live spec differs; bump ome.io/runtime-sync annotation to advance",
    )
    assert isinstance(rendered.actions["engine"], Hold)

    cluster.annotate(cluster.target, runtime_sync="mem-frac-0-85")
    rendered = cluster.reconcile()
    second = cluster.service["status"]["pinnedRevisionName"]
    assert second.startswith(prefix)
    assert second != first
    assert cluster.service["status"]["lastRuntimeSyncToken"] == "mem-frac-0-85"
    assert conditions(rendered) == {
        "IngressReady": ("IngressDisabled", conditions(rendered)["IngressReady"][1])
    }
    assert container(rendered)["args"] == ["--tp-size=1", "--mem-frac=0.85"]
    assert sorted(cluster.revisions) == sorted([first, second])

    cluster.service["spec"]["runtime"]["revision"] = first
    rendered = cluster.reconcile()
    assert cluster.service["status"]["pinnedRevisionName"] == first
    assert container(rendered)["args"] == ["--tp-size=1", "--mem-frac=0.9"]
    cluster.annotate(cluster.target, runtime_sync="ignored")
    assert container(cluster.reconcile())["args"] == ["--tp-size=1", "--mem-frac=0.9"]

    cluster.service["spec"]["runtime"]["revision"] = f"cr-sglang-llama-3-2-3b-{first[-8:]}"
    assert cluster.reconcile().denial == (
        f'spec.runtime.revision "cr-sglang-llama-3-2-3b-{first[-8:]}" does not match the expected naming '
        'convention for runtime "sglang-llama-3-2-3b" (ServingRuntime); expected the form '
        "r-llama-demo-sglang-llama-3-2-3b-<8 lowercase hex chars>"
    )


def test_a_profile_edit_drifts_the_pinned_and_reaches_the_others() -> None:
    cluster = Cluster("profile")
    cluster.service["spec"]["runtime"]["autoSync"] = False
    cluster.reconcile()
    cluster.raw[PROFILE]["spec"]["engineConfig"]["runner"]["image"] = "sglang:new"
    assert conditions(cluster.reconcile())["RuntimeDrifted"][0] == "RevisionMismatch"
    del cluster.service["spec"]["runtime"]["autoSync"]
    assert container(cluster.reconcile())["image"] == "sglang:new"


def conditions(rendered: Plan) -> dict[str, tuple[str, str]]:
    return {each["type"]: (each["reason"], each["message"]) for each in rendered.conditions}


L40S = ["--tp-size=4", "--pp-size=2", "--mem-frac=0.85"]
H100 = ["--tp-size=8", "--pp-size=1", "--mem-frac=0.9"]
CHOICES: list[tuple[str, Json, Json, list[str], str]] = [
    ("by name", {"acceleratorClass": "nvidia-l40s"}, {}, L40S, "NVIDIA-L40S"),
    (
        "BestFit",
        {"policy": "BestFit", "constraints": {"minMemory": 40}},
        {},
        L40S,
        "NVIDIA-L40S",
    ),
    ("Cheapest", {"policy": "Cheapest"}, {}, L40S, "NVIDIA-L40S"),
    ("MostCapable", {"policy": "MostCapable"}, {}, H100, "NVIDIA-H100-80GB-HBM3"),
    ("FirstAvailable", {"policy": "FirstAvailable"}, {}, H100, "NVIDIA-H100-80GB-HBM3"),
    (
        "an override of the component's class",
        {"policy": "MostCapable"},
        {"acceleratorClass": "nvidia-l40s"},
        L40S,
        "NVIDIA-L40S",
    ),
    (
        "an override of the component's policy",
        {"policy": "FirstAvailable"},
        {"policy": "Cheapest"},
        L40S,
        "NVIDIA-L40S",
    ),
]


@pytest.mark.parametrize(
    ("title", "selector", "override", "flags", "product"),
    CHOICES,
    ids=[case[0] for case in CHOICES],
)
def test_the_70b_on_a_class(
    title: str, selector: Json, override: Json, flags: list[str], product: str
) -> None:
    cluster = Cluster("llama-3-3-70b")
    cluster.service["spec"]["acceleratorSelector"] = selector
    if override:
        cluster.service["spec"]["engine"]["acceleratorOverride"] = override
    rendered = cluster.reconcile()
    assert container(rendered)["args"][-3:] == flags
    pod = deployment(rendered)["spec"]["template"]["spec"]
    assert pod["nodeSelector"]["nvidia.com/gpu.product"] == product
    assert not rendered.warnings
