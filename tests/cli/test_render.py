"""`ome render` as a user meets it: streams, exit codes, formats."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from ome.cli.main import main
from ome.cli.output import to_yaml
from ome.engines import (
    CONTRACT,
    EngineInfo,
    Parameter,
    ParameterType,
    Preset,
    Profile,
    hookimpl,
)
from ome.engines.engines import Engines, LoadError, register

EXAMPLES = Path(__file__).parents[2] / "examples"
RUNTIME = """\
apiVersion: ome.io/v1beta1
kind: ClusterServingRuntime
metadata: {name: rt}
spec:
  engineConfig:
    runner: {name: ome-container, image: "engine:v1", args: ["--v=1e3", "yes"]}
"""
SERVICE = """\
---
apiVersion: ome.io/v1beta1
kind: InferenceService
metadata: {name: NAME, namespace: SPACE}
spec: {runtime: {name: RT}, engine: {}}
"""


def service(name: str, namespace: str = "demo", runtime: str = "rt") -> str:
    return SERVICE.replace("NAME", name).replace("SPACE", namespace).replace("RT", runtime)


@pytest.fixture(autouse=True)
def no_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    """These tests are the core's: they pass with any plugins installed, or none."""
    for command in ("input", "engines"):
        monkeypatch.setattr(f"ome.cli.{command}.discover", lambda **_: Engines())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "in.yaml"


def run(capsys: pytest.CaptureFixture[str], *arguments: Any) -> tuple[int, str, str]:
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_objects_as_yaml(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(RUNTIME + service("chat"))
    code, out, err = run(capsys, "render", "-f", file)
    assert (code, err) == (0, "")
    objects = list(yaml.safe_load_all(out))
    assert [item["kind"] for item in objects] == [
        "Deployment",
        "Service",
        "PodMonitor",
        "HorizontalPodAutoscaler",
        "Service",
    ]
    assert "&id" not in out
    assert '- "--v=1e3"' in out or "- --v=1e3" in out
    assert '- "yes"' in out


def test_objects_as_one_json_list(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(RUNTIME + service("chat"))
    code, out, _ = run(capsys, "render", "-f", file, "-o", "json")
    data = json.loads(out)
    assert (code, data["apiVersion"], data["kind"], len(data["items"])) == (0, "v1", "List", 5)


def test_a_refused_service_leaves_the_others(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(RUNTIME + service("bad", runtime="gone") + service("good"))
    code, out, err = run(capsys, "render", "-f", file)
    assert code == 1
    assert {item["metadata"]["name"] for item in yaml.safe_load_all(out)} == {"good", "good-engine"}
    assert err == (
        "error: InferenceService/demo/bad: spec.runtime.name: runtime gone not found in namespace demo "
        "or at cluster scope; create the runtime, or name one that exists\n"
    )


def test_unusable_input(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text("a:\n\tb: 1")
    code, out, err = run(capsys, "render", "-f", file)
    assert (code, out) == (2, "")
    assert err == (
        f"error: {file}: document 1, line 2: a tab indents this line; YAML is indented with spaces only\n"
    )


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ([], "there is no InferenceService in the input"),
        (["--name", "x"], 'there is no InferenceService named "x" in the input'),
        (["-n", "y"], "there is no InferenceService in namespace y in the input"),
    ],
)
def test_nothing_to_render(
    flags: list[str], message: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file.write_text(RUNTIME)
    assert run(capsys, "render", "-f", file, *flags) == (2, "", f"error: {message}\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: COMMAND"),
        (["render"], "the following arguments are required: -f/--filename"),
        (["render", "-f", "x", "-o", "xml"], "argument -o/--output: invalid choice: 'xml'"),
        (["nonsense"], "argument COMMAND: invalid choice: 'nonsense'"),
    ],
)
def test_unusable_flags(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
    err = capsys.readouterr().err
    assert err.startswith(f"error: {message}")
    assert "--help' for usage." in err


def test_namespace_and_name_choose_services(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(RUNTIME + service("a") + service("b") + service("a", "other"))
    _, out, _ = run(capsys, "render", "-f", file, "--name", "a", "-n", "other")
    found = {
        (item["metadata"]["namespace"], item["metadata"]["name"])
        for item in yaml.safe_load_all(out)
    }
    assert found == {("other", "a"), ("other", "a-engine")}


def test_the_plan(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(RUNTIME + service("chat"))
    code, out, _ = run(capsys, "render", "-f", file, "--show", "plan")
    (data,) = yaml.safe_load_all(out)
    assert (code, data["service"]) == (0, "InferenceService/demo/chat")
    assert data["actions"]["decoder"] == {"action": "Remove"}
    _, out, _ = run(capsys, "render", "-f", file, "--show", "plan", "-o", "json")
    assert json.loads(out) == {"plans": [data]}


def test_provenance_side_by_side_and_as_data(capsys: pytest.CaptureFixture[str]) -> None:
    example = EXAMPLES / "llama-3-3-70b"
    code, out, err = run(capsys, "render", "-f", example, "--show", "provenance")
    assert (code, err) == (0, "")
    lines = [line.split("   ") for line in out.splitlines()]
    shown = {cells[0].strip(): cells[-1].strip() for cells in lines}
    assert out.startswith("InferenceService/llama-demo/llama-3-3-70b-instruct engine\nFIELD ")
    assert shown["containers[ome-container].args[3]"] == "AcceleratorClass/nvidia-l40s"
    assert (
        shown["containers[ome-container].args[0]"] == "ClusterServingRuntime/sglang-llama-3-3-70b"
    )
    assert shown["minReplicas"] == "InferenceService"
    _, out, _ = run(capsys, "render", "-f", example, "--show", "provenance", "-o", "json")
    (entry,) = json.loads(out)["provenance"]
    leaf = next(
        i for i in entry["components"]["engine"] if i["path"] == "containers[ome-container].args[3]"
    )
    assert leaf == {
        "path": "containers[ome-container].args[3]",
        "value": "--tp-size=4",
        "layer": "AcceleratorClass/nvidia-l40s",
    }


def test_an_api_that_the_cluster_lacks(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(RUNTIME + service("chat"))
    _, out, _ = run(capsys, "render", "-f", file, "--without-api", "monitoring.coreos.com/v1")
    assert "PodMonitor" not in out


def test_warnings_go_to_stderr(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text(RUNTIME.replace("spec:", "spec:\n  disable: false") + service("chat"))
    code, _, err = run(capsys, "render", "-f", file)
    assert code == 0
    assert err == (
        f"Warning: {file}: document 1, line 5: ClusterServingRuntime/rt: spec.disable: unknown field, the "
        'API server drops it; did you mean "disabled"?\n'
    )


class FakeEngine:
    @hookimpl
    def ome_describe(self) -> EngineInfo:
        return EngineInfo("fake", CONTRACT, "for tests")

    @hookimpl
    def ome_presets(self) -> list[Preset]:
        port = Parameter("port", 80, "where it listens", ParameterType.PORT)
        return [Preset("fake-pd", "routerConfig: {minReplicas: {{ port }}}", (port,))]

    @hookimpl
    def ome_profiles(self) -> list[Profile]:
        return [
            Profile("fake-http", probes={"livenessProbe": {}}),
            Profile("prom", annotations={"a": "b"}),
        ]


class Second(FakeEngine):
    @hookimpl
    def ome_describe(self) -> EngineInfo:
        return EngineInfo("second", CONTRACT, "for tests")


def test_engines(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    fake = register(FakeEngine(), distribution="ome-engine-fake", version="1.2")
    failed = LoadError("bad", "ome-engine-bad", "import failed: ImportError: no luck")
    monkeypatch.setattr("ome.cli.engines.discover", lambda: Engines([fake], [failed]))
    code, out, _ = run(capsys, "engines")
    assert code == 1
    assert out == (
        "ENGINE   STATUS   DISTRIBUTION      VERSION   CONTRACT   PRESETS   PROBES      OBSERVABILITY\n"
        "fake     Ready    ome-engine-fake   1.2       1          fake-pd   fake-http   prom\n"
        "bad      Failed   ome-engine-bad    -         -          -         -           -\n"
        "\nbad (ome-engine-bad): import failed: ImportError: no luck\n"
    )
    _, out, _ = run(capsys, "engines", "-o", "json")
    data = json.loads(out)
    assert [item["status"] for item in data["engines"]] == ["Ready", "Failed"]
    assert data["engines"][0]["presetParameters"] == {
        "fake-pd": [
            {"name": "port", "type": "port", "default": 80, "description": "where it listens"}
        ]
    }
    twice = register(Second(), distribution="ome-engine-second", version="2")
    monkeypatch.setattr("ome.cli.engines.discover", lambda: Engines([fake, twice]))
    code, out, _ = run(capsys, "engines")
    problem = (
        "preset fake-pd of engine plugin second (ome-engine-second 2) isn't used: "
        "fake (ome-engine-fake 1.2) and second (ome-engine-second 2) both supply it"
    )
    assert (code, out.splitlines()[-1]) == (1, problem)
    _, out, _ = run(capsys, "engines", "-o", "json")
    assert [item["message"] for item in json.loads(out)["problems"]] == [problem]
    monkeypatch.setattr("ome.cli.engines.discover", Engines)
    code, out, _ = run(capsys, "engines")
    assert (code, out) == (
        0,
        "No engine plugin is installed; containers are rendered by the documented rules alone.\n",
    )


def test_a_plugin_that_does_not_load_is_named_and_the_rest_is_rendered(
    file: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    failed = LoadError("bad", "ome-engine-bad", "import failed: ImportError: no luck")
    monkeypatch.setattr("ome.cli.input.discover", lambda **_: Engines([], [failed]))
    file.write_text(RUNTIME + service("chat"))
    code, out, err = run(capsys, "render", "-f", file)
    assert (code, len(list(yaml.safe_load_all(out)))) == (0, 5)
    assert err == (
        "Warning: engine plugin bad of ome-engine-bad isn't used: import failed: ImportError: no luck\n"
    )


def test_crds(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "crds")
    names = [item["spec"]["names"]["kind"] for item in yaml.safe_load_all(out)]
    assert (code, len(names)) == (0, 6)


def test_help_is_cheap_and_the_pipe_may_close() -> None:
    script = "import sys, resource; from ome.cli.main import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    probe = (
        script + "print(sorted(m for m in sys.modules if m in ('yaml', 'pydantic', 'stevedore')))"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    "text", ["0X1F", "0O17", "+0X1f", "1e+_3", "y", "NO", "1_000", "0b1", "12e3"]
)
def test_strings_that_some_reader_takes_for_something_else_are_quoted(text: str) -> None:
    assert to_yaml([{"a": text, text: 1}]) == f'a: "{text}"\n"{text}": 1\n'


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_output_that_can_not_be_written(file: Path) -> None:
    file.write_text(RUNTIME + service("chat"))
    command = [
        sys.executable,
        "-c",
        "from ome.cli.main import run; run()",
        "render",
        "-f",
        str(file),
    ]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "error: can't write the output: No space left on device"


def test_the_reader_may_go_away(file: Path) -> None:
    file.write_text(RUNTIME + "".join(service(f"s{at}") for at in range(200)))
    command = "from ome.cli.main import run; run()"
    process = subprocess.Popen(
        [sys.executable, "-c", command, "render", "-f", str(file)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(10)
    process.stdout.close()
    err = process.stderr.read()
    process.stderr.close()
    assert process.wait() == 0
    assert err == b""


def test_a_recorded_choice_counts_only_when_asked_for(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    entry = {"modelFormat": {"name": "f"}, "modelFramework": {"name": "w"}, "autoSelect": True}
    runner = {"name": "ome-container", "image": "x"}
    old, better = (
        {
            "apiVersion": "ome.io/v1beta1",
            "kind": "ClusterServingRuntime",
            "metadata": {"name": name},
            "spec": {
                "supportedModelFormats": [{**entry, "priority": priority}],
                "engineConfig": {"runner": runner},
            },
        }
        for name, priority in (("old", 1), ("better", 2))
    )
    wanted = {
        "apiVersion": "ome.io/v1beta1",
        "kind": "ClusterBaseModel",
        "metadata": {"name": "m"},
        "spec": {**entry, "autoSelect": None, "storage": {"storageUri": "hf://a/b", "path": "/m"}},
    }
    del wanted["spec"]["autoSelect"]
    asked = {
        "apiVersion": "ome.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": "chat", "namespace": "demo"},
        "spec": {"model": {"name": "m"}, "engine": {}},
    }

    def chosen(*objects: Any, flags: tuple[str, ...] = ()) -> tuple[str, Any]:
        file.write_text(yaml.safe_dump_all(objects))
        _, out, _ = run(capsys, "render", "-f", file, "--show", "plan", "-o", "json", *flags)
        decision = json.loads(out)["plans"][0]["decision"]
        return decision["record"]["name"], decision["record"]

    name, record = chosen(old, wanted, asked)
    assert name == "old"
    served = {**asked, "status": {"runtimeSelection": record}}
    assert chosen(old, better, wanted, served)[0] == "better"
    assert chosen(old, better, wanted, served, flags=("--from-status",))[0] == "old"


def test_the_example_of_directives(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "render", "-f", EXAMPLES / "merging")
    assert (code, err) == (0, "")
    template = next(yaml.safe_load_all(out))["spec"]["template"]["spec"]
    (runner,) = template["containers"]
    assert runner["args"][3:] == ["--max-running-requests", "64", "--enable-metrics"]
    assert "env" not in runner
    assert "livenessProbe" not in runner
    assert template["volumes"] == [{"name": "cache", "hostPath": {"path": "/data/cache"}}]
    assert template["nodeSelector"] == {"pool": "l40s"}


def test_a_runtimes_directive_that_finds_nothing_is_warned_about_once(
    capsys: pytest.CaptureFixture[str], file: Path
) -> None:
    runtime = RUNTIME + "    nodeSelector: {$patch: delete}\n    volumez: []\n"
    file.write_text(runtime + service("one") + service("two"))
    _, out, err = run(capsys, "render", "-f", file)
    assert "$patch" not in out
    lines = [line for line in err.splitlines() if "$patch" in line]
    assert lines == [
        "Warning: ClusterServingRuntime/rt: spec.engineConfig.nodeSelector.$patch: $patch: delete finds "
        "nothing to delete: no lower layer sets it; remove it, or correct what it names"
    ]
    assert (
        'spec.engineConfig.volumez: unknown field, the API server drops it; did you mean "volumes"?'
        in err
    )


def test_a_directive_that_is_none_has_its_place(
    capsys: pytest.CaptureFixture[str], file: Path
) -> None:
    file.write_text(RUNTIME + "    nodeSelector: {$patch: gone}\n" + service("one"))
    code, _, err = run(capsys, "render", "-f", file)
    assert code == 2
    assert err == (
        f"error: {file}: document 1, line 7: ClusterServingRuntime/rt: "
        'spec.engineConfig.nodeSelector.$patch: $patch must be delete or replace, not "gone"; delete takes '
        "away what lower layers set, replace takes only what stands here\n"
    )
