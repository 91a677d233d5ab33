"""Pod templates are frozen, with all of OME's engine plugins installed as well."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import podtemplates
from ome.engines.engines import Engines
from ome.planning.advice import view_of

CASES = podtemplates.cases(podtemplates.WITH_PLUGINS)
CORE = podtemplates.cases(podtemplates.CORE)


@pytest.fixture(scope="module")
def engines() -> Engines:
    return podtemplates.own_engines()


@pytest.mark.parametrize("case", [*CASES, *CORE], ids=lambda path: path.name)
def test_frozen(case: Path, engines: Engines) -> None:
    """The core's cases too: what a plugin knows changes no pod that is right without it."""
    podtemplates.check(case, engines)


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_a_case_takes_a_plugin(case: Path) -> None:
    """Without plugins it would render otherwise, or not at all: else it belongs to the core's."""
    try:
        text = podtemplates.freeze(podtemplates.sources(case), Engines())
    except ValueError:
        return
    assert text != (case / "pods.yaml").read_text()


def test_there_are_twenty_cases_of_our_own() -> None:
    assert len([each for each in (*CASES, *CORE) if (each / "input.yaml").exists()]) >= 20


def test_every_engine(engines: Engines) -> None:
    """By a container that it recognises, or a preset of its that fills one."""
    found: set[str] = set()
    for case in (*CASES, *CORE):
        found.update(_taking_part(podtemplates.sources(case), engines))
    assert found == {each.name for each in engines}


def _taking_part(path: Path, engines: Engines) -> Iterator[str]:
    plans = podtemplates.plans(path, engines, provenance=True)
    for workload in podtemplates.workloads(plans):
        for container in workload["template"]["spec"]["containers"]:
            if owner := engines.recognise(view_of(container)).engine:
                yield owner.name
    layers = {
        layer for each in plans for part in each.provenance.values() for _, layer in part.values()
    }
    for engine in engines:
        if {f"preset/{each.name}" for each in engine.presets} & layers:
            yield engine.name
