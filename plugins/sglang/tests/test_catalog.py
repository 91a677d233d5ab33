"""Every SGLang runtime of OME's public catalog: recognised, read without a stray word, and judged.

The catalog is no part of this package: `OME_CATALOG` names it (an archive or a folder).
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from ome.engines import Basis, Detection, PodView, Severity, parse
from ome.testing.catalog import catalog_path
from ome.testing.runners import Runner, catalog_runners
from ome_engine_sglang.commandline import read_command_line
from ome_engine_sglang.detect import detect
from ome_engine_sglang.findings import find
from ome_engine_sglang.flags import dialect
from ome_engine_sglang.geometry import geometry_of
from ome_engine_sglang.launch import read_launch

HERE = Path(__file__).resolve().parent
REVIEWED = json.loads((HERE / "data" / "catalog-findings.json").read_text("utf-8"))
SPREAD = json.loads((HERE / "data" / "catalog-geometry.json").read_text("utf-8"))

pytestmark = pytest.mark.skipif(
    not catalog_path().exists(), reason=f"no catalog at {catalog_path()}: set OME_CATALOG"
)


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
    assert len(runners) == 408
    assert Counter(found for _, found in recognised) == {
        Detection(Basis.COMMAND, "0.5.5.post3"): 194,
        Detection(Basis.COMMAND, "0.5.6"): 2,
        Detection(Basis.COMMAND): 8,
    }
    assert all(runner.component != "router" for runner, _ in recognised)


def test_grouping_leaves_no_stray_word(recognised: list[tuple[Runner, Detection]]) -> None:
    for runner, found in recognised:
        launch = read_launch(runner.seen.argv)
        assert launch is not None
        groups = parse(launch.arguments, dialect(found.version))
        assert [group.words for group in groups if not group.key] == [], runner.runtime


def test_every_flag_has_an_arity(recognised: list[tuple[Runner, Detection]]) -> None:
    for runner, found in recognised:
        launch = read_launch(runner.seen.argv)
        assert launch is not None
        known = dialect(found.version)
        keys = {group.key for group in parse(launch.arguments, known)}
        assert {key for key in keys if known.arity_of(key) is None} == set(), runner.runtime


def test_findings_are_the_reviewed_ones(recognised: list[tuple[Runner, Detection]]) -> None:
    codes: dict[str, list[str]] = {}
    for runner, found in recognised:
        view = runner.view(found)
        for finding in find(view):
            if finding.severity is not Severity.NOTE:
                codes.setdefault(runner.runtime, []).append(finding.code)
    assert codes == REVIEWED


def spread_of(view: PodView) -> tuple[int | None, str]:
    """How many accelerators share the weights, or why that can't be known."""
    line, geometry = read_command_line(view), geometry_of(view)
    if geometry is None:
        return None, line.launch.opaque or "another parser reads the flags"
    if geometry.shards is not None:
        return geometry.shards, ""
    return None, f"--tp-size is {line.value('--tp-size')}"


def test_every_runtime_tells_its_spread_or_why_not(
    recognised: list[tuple[Runner, Detection]],
) -> None:
    shards: Counter[str] = Counter()
    reasons: dict[str, set[str]] = {}
    for runner, found in recognised:
        view = runner.view(found)
        number, reason = spread_of(view)
        if number is not None:
            shards[str(number)] += 1
        else:
            reasons.setdefault(reason, set()).add(runner.runtime)
    unknown = {reason: sorted(runtimes) for reason, runtimes in reasons.items()}
    assert {"shards": shards, "unknown": unknown} == SPREAD
