"""`ome diff`: which services a change reaches, why, and which pods restart."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from ome.cli.main import main
from ome.engines.engines import Engines
from ome.testing.builders import ENTRY, model, runtime, service


@pytest.fixture(autouse=True)
def no_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ome.cli.input.discover", lambda **_: Engines())


def world() -> dict[str, Any]:
    runner = {"name": "ome-container", "image": "engine:v1", "args": ["--a=1", "--b=1"]}
    auto = [{**ENTRY, "autoSelect": True}]
    objects = {
        "profile": runtime({"runner": runner}, name="profile", disabled=True),
        "rt": runtime(
            {"runner": {"name": "ome-container", "env": [{"name": "A", "value": "1"}]}},
            disabled=False,
            metadata={"annotations": {"ome.io/inherit-from": "profile"}},
        ),
        "auto": runtime(name="auto", supportedModelFormats=auto),
        "m": model(),
        "one": service("one", model={"name": "m"}),
        "two": service("two", model={"name": "m"}, engine={"minReplicas": 2}),
        "chosen": service("chosen", model={"name": "m"}, runtime=None),
    }
    return {name: copy.deepcopy(item.raw) for name, item in objects.items()}


def run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], after: dict[str, Any], *flags: str
) -> tuple[int, str, str]:
    for name, objects in (("before.yaml", world()), ("after.yaml", after)):
        (tmp_path / name).write_text(yaml.safe_dump_all(objects.values()))
    code = main(["diff", str(tmp_path / "before.yaml"), str(tmp_path / "after.yaml"), *flags])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_no_change(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, capsys, world()) == (0, "no service changes\n", "")
    assert run(tmp_path, capsys, world(), "-o", "markdown")[1] == "No service changes.\n"


def test_a_change_of_a_shared_profile_reads_as_one_cause(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    after = world()
    after["profile"]["spec"]["engineConfig"]["runner"]["image"] = "engine:v2"
    after["profile"]["spec"]["engineConfig"]["runner"]["args"] = ["--a=2", "--b=1"]
    code, out, err = run(tmp_path, capsys, after)
    assert (code, err) == (1, "")
    head = out.split("\n\nChanged")[0]
    assert head == (
        "2 service(s) change, 2 Deployment(s) restart their pods\n"
        "\n"
        "By cause:\n"
        "  ClusterServingRuntime/profile: containers[ome-container].args: demo/one, demo/two\n"
        "  ClusterServingRuntime/profile: containers[ome-container].image: demo/one, demo/two"
    )
    assert "      - --a=1\n      + --a=2\n" in out


def test_a_change_that_restarts_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    after = world()
    after["two"]["spec"]["engine"]["minReplicas"] = 3
    _, out, _ = run(tmp_path, capsys, after, "-o", "json")
    data = json.loads(out)
    (changed,) = data["services"]
    assert (changed["service"], changed["restarts"]) == ("InferenceService/demo/two", [])
    causes = {item["path"]: item["cause"] for item in changed["fields"]}
    # The upper bound follows the lower one because nobody sets it.
    assert causes == {"spec.minReplicas": "InferenceService", "spec.maxReplicas": "OME"}


def test_services_that_come_go_choose_anew_or_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    after = world()
    better = [{**ENTRY, "autoSelect": True, "priority": 9}]
    after["better"] = copy.deepcopy(runtime(name="better", supportedModelFormats=better).raw)
    after["new"] = copy.deepcopy(service("new", model={"name": "m"}).raw)
    after["one"]["spec"]["runtime"]["name"] = "gone"
    del after["two"]
    _, out, _ = run(tmp_path, capsys, after, "-o", "json")
    found = {item["service"].rpartition("/")[2]: item for item in json.loads(out)["services"]}
    assert {name: item["change"] for name, item in found.items()} == {
        "chosen": "Changed",
        "new": "Added",
        "one": "Changed",
        "two": "Removed",
    }
    assert found["chosen"]["runtime"] == {
        "before": "ClusterServingRuntime/auto",
        "after": "ClusterServingRuntime/better",
    }
    assert found["one"]["refusal"]["after"] == (
        "runtime gone not found in namespace demo or at cluster scope"
    )
    _, out, _ = run(tmp_path, capsys, after)
    assert "runtime: ClusterServingRuntime/auto -> ClusterServingRuntime/better" in out
    assert "1 service(s) get another runtime, 1 service(s) are refused" in out
    _, out, _ = run(tmp_path, capsys, after, "-o", "markdown")
    assert "| demo/one | Changed | - | refused: runtime gone not found" in out


def test_a_field_that_goes_is_attributed_to_who_set_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    after = world()
    del after["rt"]["spec"]["engineConfig"]["runner"]["env"]
    after["profile"]["spec"]["engineConfig"]["runner"]["args"] = ["--a=1"]
    _, out, _ = run(tmp_path, capsys, after, "-o", "json")
    causes = {item["field"]: item["cause"] for item in json.loads(out)["causes"]}
    assert causes["containers[ome-container].env[A].value"] == "ClusterServingRuntime/rt"
    assert causes["containers[ome-container].args"] == "ClusterServingRuntime/profile"


def test_unusable_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["diff", str(tmp_path / "gone"), str(tmp_path)])
    assert code == 2
    assert capsys.readouterr().err == f"error: {tmp_path}/gone: No such file or directory\n"


def test_values_of_several_lines_stay_on_one(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    for name, text in (("before", "a"), ("after", "--a\n```\n## b")):
        runner = {"name": "ome-container", "image": "e:1", "args": [text]}
        items = [runtime({"runner": runner}).raw, service().raw]
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump_all(items))
    files = [str(tmp_path / f"{name}.yaml") for name in ("before", "after")]
    for output in ("text", "markdown"):
        assert main(["diff", *files, "-o", output]) == 1
        out = capsys.readouterr().out
        assert '+ "--a\\n```\\n## b"' in out
        assert "\n## b" not in out
