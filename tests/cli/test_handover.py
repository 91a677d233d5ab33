"""The answer to another version of OME: an interface, frozen by example."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from ome import __version__
from ome.cli.handover import answer, main
from ome.engines.engines import Engines, LoadError
from ome.planning.rendered import Rendered
from ome.testing.builders import runtime, service


@pytest.fixture(autouse=True)
def plugins(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Engines([], [LoadError("bad", "ome-engine-bad", "import failed")])
    monkeypatch.setattr("ome.cli.handover.discover", lambda **_: broken)


def request(path: Path, **changes: object) -> dict[str, object]:
    asked = {"protocol": 1, "filename": [str(path)], "recursive": False}
    return {**asked, "namespace": None, "ome_namespace": "ome", **changes}


HEAD = {
    "protocol": 1,
    "ome": __version__,
    "engines": {},
    "failed": ["bad of ome-engine-bad: import failed"],
}


def test_the_answer(tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(yaml.safe_dump_all([runtime().raw, service().raw]))
    main(json.dumps(request(path)))
    told = json.loads(capsysbinary.readouterr().out)
    (item,) = told.pop("services")
    assert told == HEAD
    assert item["service"] == {"kind": "InferenceService", "namespace": "demo", "name": "chat"}
    assert (item["runtime"], item["refusal"]) == ("ClusterServingRuntime/rt", None)
    assert item["objects"][0]["kind"] == "Deployment"
    layers = item["layers"]["engine"]
    assert layers["containers[ome-container].image"] == "ClusterServingRuntime/rt"
    assert sorted(item) == ["layers", "objects", "refusal", "removals", "runtime", "service"]
    assert Rendered.from_json(item).as_json() == item


def test_a_refused_service(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(yaml.safe_dump(service().raw))
    (item,) = answer(request(path))["services"]
    assert item["refusal"] == "runtime rt not found in namespace demo or at cluster scope"
    assert (item["runtime"], item["objects"]) == (None, [])


def test_unusable_input_and_another_protocol(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    assert answer(request(gone)) == {**HEAD, "faults": [f"{gone}: No such file or directory"]}
    assert answer(request(gone, protocol=2)) == HEAD
