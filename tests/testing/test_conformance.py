"""The conformance suite finds what it is there for: a plugin with one fault fails the test for it."""

from __future__ import annotations

import itertools
import time
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ome.engines import (
    CONTRACT,
    Arity,
    Basis,
    Container,
    Detection,
    Dialect,
    EngineInfo,
    Finding,
    Geometry,
    PodView,
    Preset,
    Profile,
    Severity,
    hookimpl,
)
from ome.engines.engines import PluginRefused
from ome.testing.conformance import Conformance, Example, Rewrite

SERVER = Container("myengine:1.2", ("myengine", "serve"), ("--size=2",))


def detect(container: Container) -> Detection | None:
    return Detection(Basis.COMMAND, "1.2") if container.argv[:1] == ("myengine",) else None


def findings(view: PodView) -> list[Finding]:
    return [Finding("Code", Severity.WARNING, "text", fix="fix")]


GOOD: dict[str, Callable[..., Any]] = {
    "ome_describe": lambda: EngineInfo("myengine", CONTRACT, "mine"),
    "ome_detect": detect,
    "ome_dialect": lambda version: Dialect(arity={"--quiet": Arity.SWITCH}, tensor=("--size",)),
    "ome_profiles": lambda: [
        Profile("p", probes={"readinessProbe": {"httpGet": {"path": "/", "port": 1}}})
    ],
    "ome_presets": lambda: [Preset("p", "engineConfig: {minReplicas: 2}")],
    "ome_findings": findings,
    "ome_geometry": lambda view: Geometry(2, 2),
}
TESTS = [name for name in vars(Conformance) if name.startswith("test_")]


def suite(entry_point: str = "", **hooks: Callable[..., Any]) -> Conformance:
    made = types.SimpleNamespace()
    for name, function in {**GOOD, **hooks}.items():
        setattr(made, name, hookimpl(function))
    attributes = {
        "plugin": made,
        "entry_point": entry_point,
        "examples": [Example(SERVER, "1.2", basis=Basis.COMMAND)],
        "foreign": [Container("other", ("other",))],
        "rewrites": [Rewrite(["--size=2"], 4, ["--size=4"], 2)],
    }
    return type("Suite", (Conformance,), attributes)()


@pytest.mark.parametrize("name", TESTS)
def test_a_good_plugin_passes(name: str) -> None:
    getattr(suite(), name)()


counter = itertools.count()


def slow(view: PodView) -> None:
    until = time.process_time() + 0.06
    while time.process_time() < until:
        pass


def meddle(view: PodView) -> None:
    view.pod["containers"][0]["image"] = "other"


def read(view: PodView) -> None:
    Path(__file__).read_text()


BAD: list[tuple[str, str, dict[str, Callable[..., Any]]]] = [
    ("another contract", "test_it_is_loaded", {"ome_describe": lambda: EngineInfo("e", 99, "x")}),
    ("no summary", "test_it_is_loaded", {"ome_describe": lambda: EngineInfo("e", CONTRACT, "")}),
    ("an unknown hook", "test_it_is_loaded", {"ome_detekt": detect}),
    ("not recognised", "test_it_recognises_its_examples", {"ome_detect": lambda container: None}),
    (
        "another version",
        "test_it_recognises_its_examples",
        {"ome_detect": lambda container: Detection(Basis.COMMAND, "2")},
    ),
    (
        "opaque",
        "test_it_recognises_its_examples",
        {"ome_detect": lambda container: Detection(Basis.COMMAND, "1.2", "why")},
    ),
    (
        "a weaker basis",
        "test_it_recognises_its_examples",
        {"ome_detect": lambda container: Detection(Basis.IMAGE, "1.2")},
    ),
    (
        "everything recognised",
        "test_it_leaves_others_alone",
        {"ome_detect": lambda container: Detection(Basis.IMAGE)},
    ),
    (
        "a command expected",
        "test_no_hook_fails_on_odd_containers",
        {"ome_detect": lambda container: container.command[0] and None},
    ),
    (
        "another answer each time",
        "test_hooks_answer_alike_each_time",
        {"ome_findings": lambda view: [Finding(str(next(counter)), Severity.ERROR, "t", fix="f")]},
    ),
    ("a file read", "test_hooks_do_no_io", {"ome_findings": read}),
    ("a pause", "test_hooks_do_no_io", {"ome_findings": lambda view: time.sleep(0)}),
    (
        "a preset with a fault",
        "test_its_presets_fill_a_runtime",
        {"ome_presets": lambda: [Preset("p", "engineConfig: {minReplicas: many}")]},
    ),
    ("no preset", "test_its_presets_fill_a_runtime", {"ome_presets": lambda: ["p"]}),
    ("the pod changed", "test_hooks_change_nothing", {"ome_findings": meddle}),
    ("junk", "test_answers_are_sound", {"ome_findings": lambda view: ["junk"]}),
    (
        "no fix",
        "test_answers_are_sound",
        {"ome_findings": lambda view: [Finding("Code", Severity.ERROR, "text")]},
    ),
    ("junk geometry", "test_answers_are_sound", {"ome_geometry": lambda view: Geometry(-1)}),
    (
        "no spelling of the flag",
        "test_parallelism_is_rewritten_in_place",
        {"ome_dialect": lambda version: Dialect()},
    ),
    (
        "a probe with two handlers",
        "test_probes_are_valid",
        {
            "ome_profiles": lambda: [
                Profile(
                    "p",
                    probes={"readinessProbe": {"httpGet": {"port": 1}, "tcpSocket": {"port": 1}}},
                )
            ]
        },
    ),
    (
        "a probe of another name",
        "test_probes_are_valid",
        {"ome_profiles": lambda: [Profile("p", probes={"probe": {"tcpSocket": {"port": 1}}})]},
    ),
    ("slow", "test_hooks_are_fast", {"ome_findings": slow}),
]


@pytest.mark.parametrize(("title", "name", "hooks"), BAD, ids=[case[0] for case in BAD])
def test_a_bad_plugin_fails(title: str, name: str, hooks: dict[str, Callable[..., Any]]) -> None:
    with pytest.raises((AssertionError, PluginRefused)):
        getattr(suite(**hooks), name)()


def test_a_missing_entry_point_fails() -> None:
    with pytest.raises(ValueError, match="not enough values"):
        suite("no-such-engine-anywhere").test_its_entry_point_leads_to_it()


def test_every_fault_that_the_suite_looks_for_is_tried() -> None:
    tried = {name for _, name, _ in BAD} | {"test_its_entry_point_leads_to_it"}
    # Grouping is the core's own, by whatever dialect: no plugin can break it.
    assert set(TESTS) - tried == {"test_words_survive_grouping"}
