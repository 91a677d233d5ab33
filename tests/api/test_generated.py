"""Generated files are what the generator would write now."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
CHART = ROOT / "charts" / "ome-crd"


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate", ROOT / "tools" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_nothing_is_stale(generate: ModuleType, capsys: pytest.CaptureFixture[str]) -> None:
    assert generate.main(["--check"]) == 0
    assert capsys.readouterr().err == ""


def test_pod_schema_is_not_stale(generate: ModuleType) -> None:
    pytest.importorskip("kubernetes_validate")
    committed = json.loads(generate.POD_SCHEMA.read_text())
    fresh = generate.pod_schema()
    if fresh["kubernetes"] != committed["kubernetes"]:
        pytest.skip(f"kubernetes-validate bundles {fresh['kubernetes']}, not the committed version")
    assert fresh == committed
    assert generate.render_pod_schema() == generate.POD_SCHEMA.read_text()


def test_a_stale_file_is_named_and_then_written(
    generate: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    target = tmp_path / "charts" / "x.yaml"
    monkeypatch.setattr(generate, "ROOT", tmp_path)
    monkeypatch.setattr(generate, "crd_files", lambda: {target: "new\n"})
    assert generate.main(["--check"]) == 1
    assert capsys.readouterr().err == (
        "generate: charts/x.yaml is stale; run: python tools/generate.py\n"
    )
    assert generate.main([]) == 0
    assert target.read_text() == "new\n"
    assert generate.main(["--check"]) == 0


def test_the_chart_holds_the_crds_and_nothing_to_interpret(generate: ModuleType) -> None:
    files = sorted((CHART / "templates").iterdir())
    assert files == sorted(generate.crd_files())
    for path in files:
        text = path.read_text()
        assert "{{" not in text, path
        annotations = yaml.safe_load(text)["metadata"]["annotations"]
        assert annotations == {"helm.sh/resource-policy": "keep"}
    assert yaml.safe_load((CHART / "Chart.yaml").read_text())["apiVersion"] == "v2"
