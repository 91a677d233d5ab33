"""Warnings about words of a command line name the layer that set them."""

from __future__ import annotations

import types
from typing import Any

from ome.engines import CONTRACT, Basis, Detection, EngineInfo, Finding, PodView, Severity, hookimpl
from ome.engines.engines import Engines, register
from ome.planning.planner import plan
from ome.planning.setters import name_setters
from ome.snapshot import Snapshot
from ome.testing.builders import runtime, service


def engines(*paths: str) -> Engines:
    def find(view: PodView) -> list[Finding]:
        return [Finding("Odd", Severity.WARNING, f"{path} is odd", path) for path in paths]

    plugin = types.SimpleNamespace(
        ome_describe=hookimpl(lambda: EngineInfo("e", CONTRACT, "e")),
        ome_detect=hookimpl(lambda container: Detection(Basis.IMAGE)),
        ome_findings=hookimpl(find),
    )
    return Engines([register(plugin, distribution="ome-engine-e", version="1")])


def messages(*paths: str) -> tuple[list[str], int]:
    base = {
        "runner": {"name": "ome-container", "image": "e:1", "command": ["serve"], "args": ["--a"]}
    }
    parent = runtime(base, name="base")
    rt = runtime({}, metadata={"annotations": {"ome.io/inherit-from": "base"}})
    own = {"runner": {"name": "ome-container", "argsPatch": [{"append": ["--b"]}]}}
    snapshot = Snapshot.of([parent, rt, service(engine=own)])
    (target,) = snapshot.services()
    used = engines(*paths)
    calls: list[Any] = []

    def again() -> Any:
        calls.append(1)
        return plan(snapshot, target, used, provenance=True)

    found = name_setters(plan(snapshot, target, used), again)
    return [each.message for each in found], len(calls)


def test_words_name_their_layer() -> None:
    assert messages("command[0]", "args[0]", "args[1]", "args[7]", "image") == (
        [
            "command[0] is odd (set by ClusterServingRuntime/base)",
            "args[0] is odd (set by ClusterServingRuntime/base)",
            "args[1] is odd (set by InferenceService)",
            "args[7] is odd",
            "image is odd",
        ],
        1,
    )


def test_nothing_is_planned_again_without_need() -> None:
    assert messages("image") == (["image is odd"], 0)
    assert messages() == ([], 0)
