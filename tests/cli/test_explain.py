"""`ome explain` and `kubectl ome runtime explain`: the documented tables, and reports as data."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from ome.cli.columns import fit_table
from ome.cli.main import main
from ome.engines.engines import Engines
from ome.testing.builders import model, obj, runtime, service

DATA = json.loads((Path(__file__).parents[1] / "vectors/explain-output.json").read_text())
TABLES = [case for case in DATA["cases"] if case.get("stdout") and "rows" in case]
FORMAT = {"name": "safetensors", "version": "1.0.0"}
FRAMEWORK = {"name": "transformers", "version": "4.45.0"}


@pytest.fixture(autouse=True)
def no_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ome.cli.input.discover", lambda **_: Engines())


def entry(weight: int | None = None, **fields: Any) -> dict[str, Any]:
    weighted = FORMAT if weight is None else {**FORMAT, "weight": weight}
    return {"modelFormat": weighted, "modelFramework": FRAMEWORK, "autoSelect": True, **fields}


def fleet() -> list[Any]:
    """The runtimes of the documented example, and some that each fail in their own way."""
    small = {"min": "500M", "max": "2B"}
    return [
        model("llama", modelFormat=FORMAT, modelFramework=FRAMEWORK, modelParameterSize="3.21B"),
        obj(
            "ServingRuntime",
            "team-llama",
            runtime(supportedModelFormats=[entry()]).raw["spec"],
            namespace="team-a",
        ),
        runtime(name="vllm-llama", supportedModelFormats=[entry(2, priority=2)]),
        runtime(name="srt-llama-1b", supportedModelFormats=[entry()], modelSizeRange=small),
        runtime(name="vllm-base", supportedModelFormats=[entry(autoSelect=False)]),
        runtime(name="vllm-legacy", supportedModelFormats=[entry()], disabled=True),
        service(
            "llama-chat",
            namespace="team-a",
            model={"name": "llama"},
            runtime={"name": "vllm-llama"},
        ),
        service("auto", namespace="team-a", model={"name": "llama"}, runtime=None),
        service("bare", namespace="team-a"),
    ]


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "fleet.yaml"
    path.write_text(yaml.safe_dump_all([item.raw for item in fleet()]))
    return str(path)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main([*arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


@pytest.mark.parametrize("case", TABLES, ids=lambda case: case["title"])
def test_documented_tables(case: dict[str, Any]) -> None:
    assert fit_table(DATA["columns"], case["rows"]) == case["stdout"]


def documented(title: str) -> str:
    text: str = next(case["stdout"] for case in TABLES if case["title"] == title)
    return text


@pytest.mark.parametrize("command", [["explain"], ["runtime", "explain"]])
def test_the_documented_example(
    command: list[str], file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, err = run(capsys, *command, "-f", file, "--model", "llama", "-n", "team-a")
    # `vllm-llama` has score 6 and stands after the namespace's own runtime, whatever the score.
    expected = documented("two candidates, three exclusions")
    assert (code, out, err) == (0, expected, "")


def test_a_service_with_a_named_runtime_gets_a_note(
    file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    note = "Note: spec.runtime is explicit; automatic selection below is hypothetical.\n"
    code, out, err = run(capsys, "explain", "-f", file, "--isvc", "llama-chat", "-n", "team-a")
    assert (code, err) == (0, note)
    assert out == documented("two candidates, three exclusions")
    assert run(capsys, "explain", "-f", file, "--isvc", "auto", "-n", "team-a")[2] == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "exactly one of --model or --isvc is required"),
        (["--model", "a", "--isvc", "b"], "exactly one of --model or --isvc is required"),
        (["--model", "gone"], 'clusterbasemodels.ome.io "gone" not found'),
        (["--isvc", "gone"], 'inferenceservices.ome.io "gone" not found'),
        (["--isvc", "bare"], 'InferenceService "bare" has no spec.model; pass --model instead'),
    ],
)
def test_errors(
    arguments: list[str], message: str, file: str, capsys: pytest.CaptureFixture[str]
) -> None:
    result = run(capsys, "explain", "-f", file, "-n", "team-a", *arguments)
    assert result == (1, "", f"error: {message}\n")


def test_without_files_and_with_bad_ones(capsys: pytest.CaptureFixture[str]) -> None:
    result = run(capsys, "explain", "--model", "m")
    text = "error: -f is required: this version of OME reads manifests, not a cluster\n"
    assert result == (1, "", text)
    code, _, err = run(capsys, "explain", "--model", "m", "-f", "nowhere.yaml")
    assert (code, err) == (1, "error: nowhere.yaml: No such file or directory\n")
    with pytest.raises(SystemExit) as caught:
        main(["runtime", "explain", "-o", "xml"])
    assert caught.value.code == 1


def test_no_runtimes_and_a_model_without_a_format(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "m.yaml"
    path.write_text(yaml.safe_dump_all([model().raw, model("bare", modelFormat=None).raw]))
    text = "No serving runtimes found in the selected namespace or at cluster scope.\n"
    assert run(capsys, "explain", "-f", str(path), "--model", "m") == (0, "", text)
    text = "error: invalid model specification: modelFormat.name: model format name is required\n"
    assert run(capsys, "explain", "-f", str(path), "--model", "bare") == (1, "", text)


def test_wide(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, out, _ = run(capsys, "explain", "-f", file, "--model", "llama", "-n", "team-a", "-o", "wide")
    rows = [line.split() for line in out.splitlines()]
    assert rows[0][-6:] == ["SCORE", "DISTANCE", "RANK", "TIE-BREAK", "ENTRY", "REASON"]
    assert rows[1][-6:] == ["2", "0", "1", "Namespace", "spec.supportedModelFormats[0]", "-"]
    assert rows[2][-6:-2] == ["6", "0", "2", "OnlyCandidate"]


def test_reports_as_data(file: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ("explain", "-f", file, "--isvc", "auto", "-n", "team-a")
    _, out, _ = run(capsys, *arguments, "-o", "json")
    data = json.loads(out)
    assert (data["apiVersion"], data["kind"]) == ("cli.ome.io/v1alpha1", "RuntimeExplainReport")
    assert data["rows"][0] == {
        "runtime": "team-llama",
        "kind": "ServingRuntime",
        "namespace": "team-a",
        "scope": "Namespaced",
        "compatible": True,
        "priority": 1,
        "weight": 2,
        "score": 2,
        "distance": 0,
        "rank": 1,
        "tieBreak": "Namespace",
        "matchingEntry": "spec.supportedModelFormats[0]",
    }
    assert data["rows"][2] == {
        "runtime": "srt-llama-1b",
        "kind": "ClusterServingRuntime",
        "scope": "Cluster",
        "compatible": False,
        "reason": "model size 3.21B is outside supported range [500M, 2B]",
    }
    _, out, _ = run(capsys, *arguments, "-o", "yaml")
    assert yaml.safe_load(out) == data


@pytest.mark.parametrize(
    ("entries", "reason"),
    [
        (
            [entry(autoSelect=False), entry(modelArchitecture="Other")],
            "matching format safetensors is not autoSelect-enabled (a different supportedModelFormats entry "
            "on this runtime has autoSelect=true, but not the one that matches this model)",
        ),
        ([entry(-5)], "auto-select score is 0"),
    ],
)
def test_runtimes_that_fit_and_can_not_be_chosen(
    entries: list[Any], reason: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = model(modelFormat={**FORMAT, "name": "safetensors"}, modelFramework=FRAMEWORK)
    if len(entries) == 2:
        entries[1]["modelFormat"] = {"name": "other"}
    path = tmp_path / "in.yaml"
    path.write_text(yaml.safe_dump_all([wanted.raw, runtime(supportedModelFormats=entries).raw]))
    _, out, _ = run(capsys, "explain", "-f", str(path), "--model", "m", "-o", "json")
    (row,) = json.loads(out)["rows"]
    assert (row["compatible"], row["reason"]) == (False, reason)


def test_where_the_headers_do_not_fit_rows_become_blocks() -> None:
    assert fit_table(("A", "LONGER"), [("1", "2"), ("3", "")], width=6) == (
        "A:        1\nLONGER:   2\n\nA:        3\nLONGER:\n"
    )


@given(st.lists(st.tuples(*[st.text("ab-_/.: x", max_size=60)] * 3), max_size=4))
def test_tables_never_exceed_the_width_and_lose_no_word(rows: list[tuple[str, ...]]) -> None:
    text = fit_table(("ONE", "TWO", "THREE"), rows)
    assert all(len(line) <= 80 for line in text.splitlines())
    shown = "".join(sorted("".join(text.split())))
    expected = "".join(
        sorted("ONETWOTHREE" + "".join("".join(cell.split()) for row in rows for cell in row))
    )
    assert shown == expected
