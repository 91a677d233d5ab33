"""`ome lint`: formats, places and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ome.cli.main import main
from ome.engines.engines import Engines

BAD = """\
apiVersion: ome.io/v1beta1
kind: ClusterServingRuntime
metadata:
  name: rt
spec:
  modelSizeRange:
    max: 4b
  disable: true
  supportedModelFormats:
    - modelFormat:
        name: f
        weight: 0
      modelFramework:
        name: w
"""


@pytest.fixture(autouse=True)
def no_plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ome.cli.input.discover", lambda **_: Engines())


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a:b,c.yaml"
    path.write_text(BAD)
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str]:
    code = main(["lint", *map(str, arguments)])
    captured = capsys.readouterr()
    assert captured.err == ""
    return code, captured.out


def test_text_names_file_line_object_field_reason_fix_and_code(
    file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(capsys, "-f", file) == (
        1,
        f"{file}:8: warning: ClusterServingRuntime/rt: spec.disable: unknown field, the API server drops it; "
        'did you mean "disabled"? [UnknownField]\n'
        f"{file}:12: warning: ClusterServingRuntime/rt: spec.supportedModelFormats[0].modelFormat.weight: "
        "weight 0 counts as 10 in the score; leave it out for 1, or set the weight that you mean [WeightZero]\n"
        f'{file}:7: error: ClusterServingRuntime/rt: spec.modelSizeRange.max: "4b" counts as 0: it rejects '
        'every model with a size; write "4B" [SizeUnreadable]\n'
        "1 error(s), 2 warning(s)\n",
    )


def test_exit_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(BAD.replace("4b", "4B").replace("  disable: true\n", ""))
    assert run(capsys, "-f", path)[0] == 0
    assert run(capsys, "-f", path, "--strict")[0] == 1
    path.write_text(
        BAD.replace("4b", "4B").replace("  disable: true\n", "").replace("weight: 0", "weight: 1")
    )
    assert run(capsys, "-f", path, "--strict") == (0, "no findings\n")


def test_json(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out = run(capsys, "-f", file, "-o", "json")
    data = json.loads(out)
    assert data["kind"] == "LintReport"
    assert data["findings"][2] == {
        "code": "SizeUnreadable",
        "severity": "error",
        "object": "ClusterServingRuntime/rt",
        "path": "spec.modelSizeRange.max",
        "message": '"4b" counts as 0: it rejects every model with a size',
        "fix": 'write "4B"',
        "file": str(file),
        "line": 7,
    }


def test_sarif(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out = run(capsys, "-f", file, "-o", "sarif")
    data = json.loads(out)
    (analysis,) = data["runs"]
    assert data["version"] == "2.1.0"
    rules = {rule["id"] for rule in analysis["tool"]["driver"]["rules"]}
    assert rules == {result["ruleId"] for result in analysis["results"]}
    assert analysis["results"][2]["level"] == "error"
    assert analysis["results"][2]["locations"] == [
        {
            "physicalLocation": {
                "artifactLocation": {"uri": str(file)},
                "region": {"startLine": 7},
            }
        }
    ]


def test_github(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, out = run(capsys, "-f", file, "-o", "github")
    shown = str(file).replace(":", "%3A").replace(",", "%2C")
    assert out.splitlines()[2] == (
        f"::error file={shown},line=7,title=SizeUnreadable::ClusterServingRuntime/rt: "
        'spec.modelSizeRange.max: "4b" counts as 0: it rejects every model with a size; write "4B"'
    )


def test_input_that_can_not_be_read_is_a_finding_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.yaml"
    path.write_text("a:\n\tb: 1")
    assert run(capsys, "-f", path) == (
        1,
        f"{path}:2: error: a tab indents this line; YAML is indented with spaces only [YamlTab]\n"
        "1 error(s), 0 warning(s)\n",
    )
    gone = tmp_path / "gone.yaml"
    assert run(capsys, "-f", gone) == (
        1,
        f"{gone}: error: No such file or directory [FileUnreadable]\n1 error(s), 0 warning(s)\n",
    )
