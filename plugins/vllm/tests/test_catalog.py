"""Every vLLM runtime of OME's public catalog: recognised by this engine alone, and its flags known.

The catalog is no part of this package: `OME_CATALOG` names it (an archive or a folder).
"""

from __future__ import annotations

from collections import Counter

import pytest

from ome.engines import Basis, Detection, Severity, parse
from ome.engines.discovery import discover
from ome.engines.kit import read_launch
from ome.testing.catalog import catalog_path
from ome.testing.runners import Runner, catalog_runners
from ome_engine_vllm.detect import detect
from ome_engine_vllm.findings import find
from ome_engine_vllm.flags import TABLE
from ome_engine_vllm.launch import SERVER

pytestmark = pytest.mark.skipif(
    not catalog_path().exists(), reason=f"no catalog at {catalog_path()}: set OME_CATALOG"
)

# Flags that the pinned version doesn't have, by runtime, reviewed. The catalog has none.
FAULTS: dict[str, list[str]] = {}


@pytest.fixture(scope="module")
def runners() -> list[Runner]:
    return catalog_runners()


@pytest.fixture(scope="module")
def recognised(runners: list[Runner]) -> list[tuple[Runner, Detection]]:
    pairs = [(runner, detect(runner.seen)) for runner in runners]
    return [(runner, found) for runner, found in pairs if found is not None]


def test_servers_are_recognised(
    runners: list[Runner], recognised: list[tuple[Runner, Detection]]
) -> None:
    assert Counter(found for _, found in recognised) == {
        Detection(Basis.COMMAND, "0.9.0.1"): 16,
        Detection(Basis.COMMAND): 1,
    }
    mentioning = {one.runtime for one in runners if "vllm" in str(one.container)}
    assert mentioning == {runner.runtime for runner, _ in recognised}


def test_no_other_engine_recognises_them(recognised: list[tuple[Runner, Detection]]) -> None:
    engines = discover()
    for runner, _ in recognised:
        found = [one.name for one in engines if one.manager.hook.ome_detect(container=runner.seen)]
        assert found == ["vllm"], runner.runtime


def test_grouping_leaves_no_stray_word(recognised: list[tuple[Runner, Detection]]) -> None:
    for runner, found in recognised:
        launch = read_launch(SERVER, runner.seen.argv)
        assert launch is not None
        groups = parse(launch.arguments, TABLE.dialect(found.version))
        assert [group.words for group in groups if not group.key] == [], runner.runtime


def test_every_flag_is_known_to_the_pinned_version(
    recognised: list[tuple[Runner, Detection]],
) -> None:
    faults: dict[str, list[str]] = {}
    for runner, found in recognised:
        launch = read_launch(SERVER, runner.seen.argv)
        assert launch is not None
        groups = parse(launch.arguments, TABLE.dialect(found.version))
        for group in groups:
            if not any(one.option_of(group.key) for one in TABLE.releases_for(found.version)):
                faults.setdefault(runner.runtime, []).append(group.key)
    assert faults == FAULTS


def test_nothing_is_found(recognised: list[tuple[Runner, Detection]]) -> None:
    for runner, found in recognised:
        view = runner.view(found)
        faults = [each for each in find(view) if each.severity is not Severity.NOTE]
        assert faults == [], runner.runtime
