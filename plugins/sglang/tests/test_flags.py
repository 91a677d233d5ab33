"""The flag table: what it holds, and the dialect that follows from it."""

from __future__ import annotations

import pytest

from ome.engines import Arity
from ome_engine_sglang.flags import (
    CONFLICTING,
    RELEASES,
    AmbiguousFlag,
    dialect,
    order_of,
    releases_for,
)

COUNTS = {
    "0.4.6.post5": 152,
    "0.4.10.post2": 194,
    "0.5.1.post3": 209,
    "0.5.3": 256,
    "0.5.4": 283,
    "0.5.5": 283,
    "0.5.5.post3": 289,
    "0.5.6": 298,
    "0.5.10": 367,
    "0.5.15": 453,
    "0.5.20": 515,
    "0.5.23": 561,
}


def test_flags_of_each_release() -> None:
    assert {one.version: len(one.by_spelling) for one in RELEASES} == COUNTS
    assert len({flag for one in RELEASES for flag in one.by_spelling}) == 632


def test_flags_with_differing_arity() -> None:
    assert {"--hybrid-kvcache-ratio", "--piecewise-cuda-graph-tokens"} == CONFLICTING
    unknown = dialect("").arity
    assert not CONFLICTING & unknown.keys()
    assert dialect("0.5.6").arity["--hybrid-kvcache-ratio"] is Arity.OPTIONAL
    assert dialect("0.5.10").arity["--hybrid-kvcache-ratio"] is Arity.SWITCH
    assert "--hybrid-kvcache-ratio" not in dialect("0.5.8").arity


ARITIES = [
    ("--tp-size", Arity.VALUE),
    ("--tp", Arity.VALUE),
    ("--mem-frac", Arity.VALUE),
    ("--nccl-init", Arity.VALUE),
    ("--trust-remote-code", Arity.SWITCH),
    ("--enable-dp-attention", Arity.SWITCH),
    ("--disable-cuda-graph", Arity.SWITCH),
    ("--no-lora-strict-loading", Arity.SWITCH),
    ("--enable-ep-moe", Arity.SWITCH),
    ("--cuda-graph-bs", Arity.MANY),
    ("--lora-paths", Arity.MANY),
    ("--help", Arity.SWITCH),
    ("-h", Arity.SWITCH),
    ("--log", None),
    ("--no-such-flag", None),
    ("-tp", None),
]


@pytest.mark.parametrize("flag, arity", ARITIES)
@pytest.mark.parametrize("version", ["", "0.5.5.post3", "0.5.23"])
def test_arity(flag: str, arity: Arity | None, version: str) -> None:
    assert dialect(version).arity_of(flag) is arity


def test_spellings_of_parallelism() -> None:
    found = dialect("0.5.23")
    assert found.prefixes
    assert found.repeatable == frozenset()
    assert found.tensor == ("--tp-size", "--tp", "--tensor-parallel-size")
    assert found.pipeline == ("--pp-size", "--pp", "--pipeline-parallel-size")


# a version, and the releases that it may parse like
VERSIONS = [
    ("0.5.5.post3", ["0.5.5.post3"]),
    ("0.5.7", ["0.5.10", "0.5.6"]),
    ("0.5.4rc1", ["0.5.4", "0.5.3"]),
    ("0.4.0", ["0.4.6.post5"]),
    ("1.0.0", ["0.5.23"]),
    ("", list(COUNTS)[::-1]),
    ("no version", list(COUNTS)[::-1]),
]


@pytest.mark.parametrize("version, expected", VERSIONS)
def test_releases_for(version: str, expected: list[str]) -> None:
    assert [one.version for one in releases_for(version)] == expected


def test_versions_are_ordered() -> None:
    texts = ["0.5.4", "0.5.5rc1", "0.5.5", "0.5.5.post1", "0.5.10"]
    keys = [order_of(text) for text in texts]
    assert None not in keys
    assert keys == sorted(key for key in keys if key is not None)
    assert order_of("v1") is None


def test_option_of() -> None:
    release = releases_for("0.5.23")[0]
    tensor = release.option_of("--tp")
    assert tensor is not None
    assert tensor.spellings == ("--tp-size", "--tensor-parallel-size")
    assert release.option_of("--nothing") is None
    assert release.option_of("-tp") is None
    with pytest.raises(AmbiguousFlag, match="--pp-size"):
        release.option_of("--pp")
