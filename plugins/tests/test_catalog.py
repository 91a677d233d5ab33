"""OME's engine plugins together on the public catalog: each server is one engine's, sizes rewrite."""

from __future__ import annotations

from collections import Counter

import pytest

from ome.engines.discovery import discover
from ome.merging.argv import set_value
from ome.testing.catalog import catalog_path
from ome.testing.runners import Runner, catalog_runners

pytestmark = pytest.mark.skipif(
    not catalog_path().exists(), reason=f"no catalog at {catalog_path()}: set OME_CATALOG"
)

# Runners that no engine recognises, reviewed: every one is a router.
UNRECOGNISED = {"router": 187}
REWRITTEN = {"tensor": 211, "tensor, otherwise": 10}


@pytest.fixture(scope="module")
def runners() -> list[Runner]:
    return catalog_runners()


def test_every_server_is_one_engines(runners: list[Runner]) -> None:
    engines = list(discover())
    owners: Counter[str] = Counter()
    without: Counter[str] = Counter()
    for runner in runners:
        found = [one.name for one in engines if one.manager.hook.ome_detect(container=runner.seen)]
        assert len(found) <= 1, f"{runner.runtime}: {found}"
        if found:
            owners[found[0]] += 1
        else:
            without[runner.component] += 1
    assert without == UNRECOGNISED
    assert owners == {"sglang": 204, "vllm": 17}


def test_sizes_are_rewritten_and_back(runners: list[Runner]) -> None:
    """To the same words: nothing is added, dropped or respelled."""
    engines = discover()
    rewritten: Counter[str] = Counter()
    for runner in runners:
        dialect = engines.recognise(runner.seen).dialect
        for words in (runner.seen.args, runner.seen.command):
            for kind, spellings in (("tensor", dialect.tensor), ("pipeline", dialect.pipeline)):
                changed = set_value(words, spellings, 77, dialect)
                if changed is None:
                    continue
                assert len(changed) == len(words)
                (at,) = (i for i, word in enumerate(words) if word != changed[i])
                before, after = changed[at].split("77", 1)
                old = words[at].removeprefix(before).removesuffix(after)
                if old.isdecimal():
                    rewritten[kind] += 1
                    assert set_value(changed, spellings, int(old), dialect) == list(words)
                else:  # a script, whose flag and value become one word, or a value by reference
                    rewritten[f"{kind}, otherwise"] += 1
                    assert " " in old or old.startswith("$("), (runner.runtime, old)
    assert rewritten == REWRITTEN
