"""No manifest gives a traceback: golden inputs with random parts replaced by odd values."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from ome.engines.discovery import discover
from ome.lint.lint import lint
from ome.planning.planner import plan
from ome.snapshot import Snapshot
from ome.sources import InstalledPresets, UnreadableInput, load

CASES = sorted((Path(__file__).parent / "golden/cases").glob("*/input.yaml"))
DOCUMENTS = [list(yaml.safe_load_all(path.read_text())) for path in CASES]
ENGINES = discover()
PRESETS = InstalledPresets(ENGINES)

ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.sampled_from([0, -1, 1, 2**40, 1.5]),
    st.sampled_from(
        ["", " ", "x", "{{.Name}}", "{{.X", "{% x %}", "é", "a/b", "8", "80Gi", "ClusterBaseModel"]
    ),
    st.sampled_from(["pvc://", "pvc://a:b:c/d", "local://", "vendor://a/b", "PVC://x", "x" * 300]),
    st.sampled_from(
        [[], {}, [None], [{}], {"name": "x"}, {"": ""}, [["x"]], {"a": None}, [1, "x"]]
    ),
    st.sampled_from(
        [
            "delete",
            "replace",
            ["name", "image"],
            {"$patch": "delete"},
            [{"$patch": "replace"}],
            [{"name": "ome-container", "$patch": "delete"}],
            [{"unset": "--tp-size"}, {"set": {"name": "--a", "value": "b"}}, {"append": ["x"]}],
        ]
    ),
    st.sampled_from([[{"name": "ome-container"}], [{"name": "a"}, {"name": "a"}], {"size": None}]),
)
EXTRA = st.sampled_from(
    "leader worker runner env volumes volumeMounts containers initContainers ports resources args command "
    "minReplicas maxReplicas autoscaler annotations labels affinity acceleratorOverride nodeSelector "
    "acceleratorSelector deploymentMode decoder router model runtime status minAvailable hostNetwork config "
    "$patch $retainKeys $deleteFromPrimitiveList/args $setElementOrder/env $x argsPatch "
    "readinessProbe schedulerName supportedModelFormats modelSizeRange disabled storage".split()
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    if isinstance(value, dict):
        for key, item in value.items():
            found += places(item, (*path, key))
    elif isinstance(value, list):
        for at, item in enumerate(value):
            found += places(item, (*path, at))
    return found


def mutate(data: st.DataObject, documents: list[Any]) -> None:
    """Replace, remove or add one thing somewhere in the documents."""
    path = data.draw(st.sampled_from([each for each in places(documents) if len(each) > 1]))
    parent: Any = documents
    for step in path[:-1]:
        parent = parent[step]
    action = data.draw(st.sampled_from(["replace", "add", "remove"]))
    here = parent[path[-1]]
    if action == "add" and isinstance(here, dict):
        here[data.draw(EXTRA)] = copy.deepcopy(data.draw(ODD))
    elif action == "remove":
        del parent[path[-1]]
    else:
        parent[path[-1]] = copy.deepcopy(data.draw(ODD))


@settings(max_examples=400)
@given(st.data())
def test_no_manifest_gives_a_traceback(data: st.DataObject) -> None:
    documents = copy.deepcopy(data.draw(st.sampled_from(DOCUMENTS)))
    for _ in range(data.draw(st.integers(1, 4))):
        mutate(data, documents)
    text = yaml.safe_dump_all(documents, allow_unicode=True).encode()
    try:
        loaded = load([("fuzz.yaml", text)], presets=PRESETS)
    except UnreadableInput as error:
        for problem in error.problems:
            assert problem.where.startswith("fuzz.yaml: ")
            assert "None" not in problem.message.replace("HPA, KEDA, External, None", "")
        return
    before = copy.deepcopy([item.raw for item in loaded.objects])
    snapshot = Snapshot.of(loaded.objects, config=loaded.config, presets=PRESETS)
    for service in snapshot.services():
        planned = plan(snapshot, service, ENGINES, provenance=True)
        json.dumps(planned.as_json())
        for _, problem in planned.refusals():
            assert problem.ref is not None
            assert problem.path
    list(lint(snapshot, ENGINES))
    assert [item.raw for item in loaded.objects] == before


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.parent.name)
def test_the_inputs_themselves_load(path: Path) -> None:
    assert load([(path.name, path.read_bytes())]).objects
