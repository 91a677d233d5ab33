"""From files to objects: what is taken, skipped, warned about and refused."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from ome.engines import CONTRACT, EngineInfo, Preset, hookimpl
from ome.engines.engines import Engines, register
from ome.snapshot import Config
from ome.sources import InstalledPresets, Loaded, UnreadableInput, load, read_paths

RUNTIME = """\
apiVersion: ome.io/v1beta1
kind: ClusterServingRuntime
metadata:
  name: rt
spec:
  engineConfig:
    runner:
      name: ome-container
      image: engine:v1
"""
SERVICE = """\
apiVersion: ome.io/v1beta1
kind: InferenceService
metadata:
  name: chat
spec:
  runtime:
    name: rt
  engine: {}
"""


def loaded(*texts: str, **options: str) -> Loaded:
    return load([(f"f{at}.yaml", text.encode()) for at, text in enumerate(texts, 1)], **options)  # type: ignore[arg-type]


def refused(*texts: str) -> list[str]:
    with pytest.raises(UnreadableInput) as caught:
        loaded(*texts)
    return [str(problem) for problem in caught.value.problems]


def test_objects_and_their_namespaces() -> None:
    found = loaded(RUNTIME + "---\n" + SERVICE, namespace="demo")
    assert [str(item.ref) for item in found.objects] == [
        "ClusterServingRuntime/rt",
        "InferenceService/demo/chat",
    ]
    assert not found.warnings
    assert [str(item.ref) for item in loaded(SERVICE).objects] == ["InferenceService/default/chat"]


def test_a_namespace_on_a_cluster_scoped_object_is_dropped() -> None:
    text = RUNTIME.replace("name: rt", "name: rt\n  namespace: demo")
    assert [str(item.ref) for item in loaded(text).objects] == ["ClusterServingRuntime/rt"]


def test_lists() -> None:
    items = [yaml.safe_load(RUNTIME), yaml.safe_load(SERVICE)]
    both = yaml.safe_dump({"apiVersion": "v1", "kind": "List", "items": items})
    assert len(loaded(both).objects) == 2
    bare = {key: items[1][key] for key in ("metadata", "spec")}
    typed = {"apiVersion": "ome.io/v1beta1", "kind": "InferenceServiceList", "items": [bare]}
    assert [item.KIND for item in loaded(yaml.safe_dump(typed)).objects] == ["InferenceService"]
    assert loaded("apiVersion: v1\nkind: List\nitems: []").objects == ()


def test_the_later_of_two_objects_stays_with_a_warning() -> None:
    second = RUNTIME.replace("engine:v1", "engine:v2")
    found = loaded(RUNTIME, second)
    (item,) = found.objects
    assert item.raw["spec"]["engineConfig"]["runner"]["image"] == "engine:v2"
    assert [str(warning) for warning in found.warnings] == [
        "f2.yaml: document 1, line 1: ClusterServingRuntime/rt: it stands twice: this one replaces the "
        "one of f1.yaml: document 1, line 1"
    ]


def test_objects_of_others_are_skipped_with_one_warning() -> None:
    other = "apiVersion: v1\nkind: {}\nmetadata: {{name: x}}"
    found = loaded(
        other.format("Namespace"),
        other.format("Secret"),
        other.format("ConfigMap"),
        other.format("Secret"),
        "apiVersion: serving.kserve.io/v1beta1\nkind: InferenceService",
        "apiVersion: ome.io/v1beta1\nkind: FineTunedWeight\nmetadata: {name: x}",
    )
    assert [str(warning) for warning in found.warnings] == [
        "skipped objects that rendering doesn't read: ConfigMap of v1 (1), "
        "FineTunedWeight of ome.io/v1beta1 (1), InferenceService of serving.kserve.io/v1beta1 (1), "
        "Namespace of v1 (1), Secret of v1 (2)"
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "just text",
            "f1.yaml: document 1, line 1: a document must be an object with apiVersion and kind",
        ),
        (
            "- a",
            "f1.yaml: document 1, line 1: a document must be an object with apiVersion and kind",
        ),
        (
            "kind: InferenceService",
            "f1.yaml: document 1, line 1: apiVersion is missing or no string",
        ),
        ("apiVersion: ome.io/v1beta1", "f1.yaml: document 1, line 1: kind is missing or no string"),
        (
            "apiVersion: ome.io/v1\nkind: InferenceService",
            "f1.yaml: document 1, line 1: InferenceService has apiVersion ome.io/v1, which isn't served; "
            "use ome.io/v1beta1",
        ),
        (
            "# first\napiVersion: ome.io/v1beta1\nkind: InferenceServce",
            'f1.yaml: document 1, line 2: there is no kind "InferenceServce" in ome.io/v1beta1; did you '
            "mean InferenceService?",
        ),
        (
            "apiVersion: ome.io/v1beta1\nkind: Zebra",
            'f1.yaml: document 1, line 1: there is no kind "Zebra" in ome.io/v1beta1; OME\'s kinds are '
            "AcceleratorClass, BaseModel, ClusterBaseModel, ClusterServingRuntime, InferenceService, "
            "ServingRuntime",
        ),
        (
            RUNTIME.replace("      name: ome-container\n", ""),
            "f1.yaml: document 1, line 8: ClusterServingRuntime/rt: spec.engineConfig.runner.name: "
            "required",
        ),
    ],
)
def test_refused_documents(text: str, message: str) -> None:
    (found,) = refused(text)
    assert found.startswith(message)


NAMING = Preset(
    "naming",
    "engineConfig: {runner: {name: ome-container, image: x}}",
)
PRESETS = InstalledPresets(
    Engines(
        [register(SimpleNamespace(
            ome_describe=hookimpl(lambda: EngineInfo("fake", CONTRACT, "")),
            ome_presets=hookimpl(lambda: [NAMING, Preset("bad", "{{ x }}")]),
        ))]
    )
)  # fmt: skip
NAMELESS = """\
apiVersion: ome.io/v1beta1
kind: ClusterServingRuntime
metadata: {name: rt, annotations: {ome.io/engine: PRESET}}
spec:
  engineConfig: {runner: {image: own}}
"""


def test_a_runtime_may_leave_required_fields_to_its_preset() -> None:
    text = NAMELESS.replace("PRESET", "naming").encode()
    (item,) = load([("f1.yaml", text)], presets=PRESETS).objects
    assert item.raw["spec"]["engineConfig"]["runner"] == {"name": "ome-container", "image": "own"}
    bare = text.split(b"spec:")[0]
    (item,) = load([("f1.yaml", bare)], presets=PRESETS).objects
    assert item.raw.get("spec") in (None, {})


@pytest.mark.parametrize(
    ("presets", "name"),
    [(None, "naming"), (PRESETS, "bad"), (PRESETS, "unknown"), (PRESETS, '""'), (PRESETS, "5")],
)
def test_required_fields_that_no_preset_gives_are_missing(
    presets: InstalledPresets | None, name: str
) -> None:
    text = NAMELESS.replace("PRESET", name).encode()
    with pytest.raises(UnreadableInput) as caught:
        load([("f1.yaml", text)], presets=presets)
    at = [problem.path for problem in caught.value.problems]
    assert "spec.engineConfig.runner.name" in at


def test_every_fault_of_every_file_is_reported() -> None:
    found = refused("a: [", "kind: x", RUNTIME.replace("image: engine:v1", "image: 5"))
    assert [line.split(":")[0] for line in found] == ["f1.yaml", "f2.yaml", "f3.yaml"]


def test_unknown_fields_are_warned_about_with_the_nearest_name() -> None:
    text = SERVICE.replace("engine: {}", "engine:\n    minReplica: 1")
    assert [str(warning) for warning in loaded(text).warnings] == [
        "f1.yaml: document 1, line 9: InferenceService/default/chat: spec.engine.minReplica: unknown "
        'field, the API server drops it; did you mean "minReplicas"?'
    ]


def test_unknown_fields_are_dropped_as_the_api_server_drops_them() -> None:
    text = RUNTIME.replace("image: engine:v1", "image: engine:v1\n      imagee: x")
    (item,) = loaded(text).objects
    assert item.raw["spec"]["engineConfig"]["runner"] == {
        "name": "ome-container",
        "image": "engine:v1",
    }


def test_faults_in_lists_name_the_item() -> None:
    both = '{"apiVersion": "v1", "kind": "List", "items": [{"kind": "X"}, {"apiVersion": "ome.io/v1", "kind": "BaseModel"}]}'
    assert [line.split(": ")[1] for line in refused(both)] == [
        "document 1, line 1, item 1",
        "document 1, line 1, item 2",
    ]


CONFIG = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: inferenceservice-config
  namespace: ome
data:
  deploy: '{"terminationGracePeriodSeconds": 600}'
"""


def test_the_configuration() -> None:
    assert loaded(CONFIG).config == Config(termination_grace_seconds=600)
    elsewhere = loaded(CONFIG.replace("namespace: ome", "namespace: other"))
    assert elsewhere.config == Config()
    assert [str(warning) for warning in elsewhere.warnings] == [
        "f1.yaml: document 1, line 1: ConfigMap/other/inferenceservice-config: it is in namespace other, "
        "not ome: ignored"
    ]
    assert refused(CONFIG.replace("600", "0")) == [
        "f1.yaml: document 1, line 1: ConfigMap/ome/inferenceservice-config: data.deploy: invalid deploy "
        "config, terminationGracePeriodSeconds must be > 0, got 0"
    ]


def test_paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "b.yaml").write_text("b: 1")
    (tmp_path / "a.yml").write_text("a: 1")
    (tmp_path / "note.txt").write_text("skipped")
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub/c.json").write_text("{}")
    root = str(tmp_path)
    names = [name.removeprefix(root + "/") for name, _ in read_paths([root])]
    assert names == ["a.yml", "b.yaml"]
    names = [name.removeprefix(root + "/") for name, _ in read_paths([root], recursive=True)]
    assert names == ["a.yml", "b.yaml", "sub/c.json"]
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"x: 1")))
    assert list(read_paths(["-"])) == [("<stdin>", b"x: 1")]


def test_unreadable_paths(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    for argument, message in (
        (str(tmp_path / "gone.yaml"), "No such file or directory"),
        (
            str(empty),
            "the directory has no .yaml, .yml or .json file; -R also reads its subdirectories",
        ),
    ):
        with pytest.raises(UnreadableInput) as caught:
            list(read_paths([argument]))
        assert str(caught.value) == f"{argument}: {message}"


def test_a_file_that_is_far_too_large(tmp_path: Path) -> None:
    huge = tmp_path / "huge.yaml"
    with huge.open("wb") as file:
        file.truncate(65 * 2**20)
    with pytest.raises(UnreadableInput, match="it is larger than 64 MiB"):
        list(read_paths([str(huge)]))


REVISION = """\
apiVersion: apps/v1
kind: ControllerRevision
metadata:
  name: cr-rt-00000000
  labels:
    ome.io/runtime-of: rt
  namespace: NAMESPACE
data: {}
revision: 1
"""


def test_only_revisions_in_omes_namespace_count() -> None:
    for namespace in ("ome", "''"):  # one that states none is OME's
        read = loaded(REVISION.replace("NAMESPACE", namespace))
        assert [each.name for each in read.revisions] == ["cr-rt-00000000"]
        assert read.warnings == ()
    read = loaded(REVISION.replace("NAMESPACE", "team"))
    assert not read.revisions
    assert [str(warning) for warning in read.warnings] == [
        "f1.yaml: document 1, line 1: ControllerRevision/team/cr-rt-00000000: it is in namespace team, not ome: "
        "ignored"
    ]
