"""The hooks as the core calls them, and what the preset gives field by field."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ome.engines import CONTRACT, Container, EngineInfo
from ome.engines.engines import Engine, Engines
from ome.engines.presets import check_preset
from ome.snapshot import Snapshot
from ome.sources import InstalledPresets, load
from ome_engine_sglang_pd.plugin import PRESET

ROOT = Path(__file__).parents[3]
VECTORS = json.loads((ROOT / "tests/vectors/preset-sglang-pd.json").read_text("utf-8"))["cases"]


def test_hook_ome_describe(engine: Engine) -> None:
    assert engine.info == EngineInfo(
        "sglang-pd", CONTRACT, "Prefill-decode serving with SGLang, as a preset"
    )


def test_hook_ome_presets(engine: Engine) -> None:
    assert engine.presets == (PRESET,)
    assert check_preset(PRESET) == ""
    assert engine.problems == ()


def test_it_recognises_no_container(engine: Engine) -> None:
    server = Container("lmsysorg/sglang:latest", ("python3", "-m", "sglang.launch_server"))
    assert Engines([engine]).recognise(server).engine is None


def at(value: Any, path: str) -> Any:
    for step in path.split("."):
        value = value[step]
    return value


@pytest.mark.parametrize("case", VECTORS, ids=lambda case: case["annotation"] or "none")
def test_vectors(case: dict[str, Any], engine: Engine) -> None:
    raw = {
        "apiVersion": "ome.io/v1beta1",
        "kind": "ClusterServingRuntime",
        "metadata": {"name": "rt", "annotations": {"ome.io/engine": case["annotation"]}},
        "spec": case["spec"],
    }
    presets = InstalledPresets(Engines([engine]))
    loaded = load([("rt.json", json.dumps(raw).encode())], presets=presets)
    snapshot = Snapshot.of(loaded.objects, presets=presets)
    if "error" in case:
        assert [problem.message for problem in snapshot.preset_problems] == [case["error"]]
        return
    found = snapshot.cluster_runtime("rt")
    assert found is not None
    spec = found.raw["spec"]
    for path, value in case.get("expectAt", {}).items():
        assert at(spec, path) == value
    if case.get("expect"):
        # The vector leaves out what ours changes for a router that starts.
        assert spec["engineConfig"].pop("annotations") == {"sglang.ai/bootstrap-port": "8998"}
        router = spec["routerConfig"]["runner"]
        assert [item["name"] for item in router.pop("env")] == [
            "NAMESPACE",
            "INFERENCESERVICE_NAME",
        ]
        assert router.pop("args")
    if "expect" in case:
        assert spec == case["expect"]


TABLE = re.compile(r"^\| `(?:engine\.ome\.io/)?([a-z-]+)` \| (\w+) \| `([^`]+)` \|", re.M)


@pytest.mark.parametrize("page", ["plugins/sglang_pd/README.md", "docs/presets.md"])
def test_the_documented_parameters_are_those_there_are(page: str) -> None:
    documented = TABLE.findall((ROOT / page).read_text("utf-8"))
    assert documented == [
        (each.name, str(each.type), str(each.default)) for each in PRESET.parameters
    ]
