"""Every SGLang runtime of OME's public catalog: recognised, read without a stray word, and judged.

The catalog is no part of this package: `OME_CATALOG` names it (an archive or a folder).
"""

from __future__ import annotations

import json
import os
import tarfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from ome.engines import Basis, Container, Detection, PodView, Severity, parse
from ome_engine_sglang.commandline import read_command_line
from ome_engine_sglang.detect import detect
from ome_engine_sglang.findings import find
from ome_engine_sglang.flags import dialect
from ome_engine_sglang.geometry import geometry_of
from ome_engine_sglang.launch import read_launch

HERE = Path(__file__).resolve().parent
NAME = "ome-catalog-v0.1.5.tar.gz"
DEFAULT = HERE.parents[3] / "shared" / "data" / NAME
CATALOG = Path(os.environ.get("OME_CATALOG", str(DEFAULT)))
REVIEWED = json.loads((HERE / "data" / "catalog-findings.json").read_text("utf-8"))
SPREAD = json.loads((HERE / "data" / "catalog-geometry.json").read_text("utf-8"))

pytestmark = pytest.mark.skipif(
    not CATALOG.exists(), reason=f"no catalog at {CATALOG}: set OME_CATALOG"
)


@dataclass(frozen=True)
class Runner:
    """A container of a runtime, as it is rendered."""

    runtime: str
    component: str
    container: dict[str, Any]
    pod: dict[str, Any]

    @property
    def seen(self) -> Container:
        """What `ome_detect` gets."""
        command, args = (tuple(self.container.get(name) or ()) for name in ("command", "args"))
        return Container(self.container["image"], command, args)

    @property
    def accelerators(self) -> int:
        """The limit of GPUs."""
        limits = (self.container.get("resources") or {}).get("limits") or {}
        return int(limits.get("nvidia.com/gpu") or 0)


def texts() -> Iterator[str]:
    if CATALOG.is_dir():
        for path in sorted(CATALOG.rglob("*.yaml")):
            yield path.read_text("utf-8")
        return
    with tarfile.open(CATALOG) as archive:
        for member in archive:
            stream = archive.extractfile(member) if member.name.endswith(".yaml") else None
            if stream is not None:
                yield stream.read().decode()


def runners_of(runtime: dict[str, Any]) -> Iterator[Runner]:
    for component in ("engine", "decoder", "router"):
        config = runtime["spec"].get(f"{component}Config") or {}
        for part in (config, config.get("leader") or {}, config.get("worker") or {}):
            if part.get("runner"):
                pod = {**part, "containers": [part["runner"]]}
                yield Runner(runtime["metadata"]["name"], component, part["runner"], pod)


@pytest.fixture(scope="module")
def runners() -> list[Runner]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    documents = [yaml.load(text, Loader=loader) for text in texts()]
    runtimes = [one for one in documents if one["kind"] == "ClusterServingRuntime"]
    return [runner for runtime in runtimes for runner in runners_of(runtime)]


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
        view = PodView(runner.component, runner.container, runner.pod, runner.accelerators, found)
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
        view = PodView(runner.component, runner.container, runner.pod, runner.accelerators, found)
        number, reason = spread_of(view)
        if number is not None:
            shards[str(number)] += 1
        else:
            reasons.setdefault(reason, set()).add(runner.runtime)
    unknown = {reason: sorted(runtimes) for reason, runtimes in reasons.items()}
    assert {"shards": shards, "unknown": unknown} == SPREAD
