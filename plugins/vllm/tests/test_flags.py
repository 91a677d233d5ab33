"""The flag table: what it holds, and the dialect that follows from it."""

from __future__ import annotations

import pytest

from ome.engines import Arity
from ome.engines.kit import AmbiguousFlag, Option
from ome.merging.argv import override, set_value
from ome_engine_vllm.flags import TABLE

COUNTS = {
    "0.7.3": 144,
    "0.8.5": 157,
    "0.9.0.1": 185,
    "0.10.2": 237,
    "0.11.0": 243,
    "0.12.0": 263,
    "0.14.0": 284,
    "0.16.0": 295,
    "0.18.0": 312,
    "0.20.1": 329,
    "0.23.0": 355,
    "0.25.0": 367,
    "0.28.0": 387,
    "0.30.0": 408,
    "0.31.0": 423,
    "0.32.0": 431,
    "0.33.0": 486,
}


def test_flags_of_each_release() -> None:
    assert {one.version: len(one.by_spelling) for one in TABLE.releases} == COUNTS


def test_flags_with_differing_arity() -> None:
    assert sorted(TABLE.conflicting) == [
        "--api-key",
        "--collect-detailed-traces",
        "--enable-chunked-prefill",
        "--guided-decoding-disable-additional-properties",
        "--guided-decoding-disable-any-whitespace",
        "--guided-decoding-disable-fallback",
        "--ignore-patterns",
        "--long-lora-scaling-factors",
        "--multi-step-stream-outputs",
    ]
    assert not TABLE.conflicting & TABLE.dialect("").arity.keys()
    assert TABLE.dialect("0.9.0.1").arity["--api-key"] is Arity.VALUE
    assert TABLE.dialect("0.33.0").arity["--api-key"] is Arity.MANY


# a flag, and its arity in the newest release, compared by hand with the release's source
ARITIES: list[tuple[str, Arity | None]] = [
    ("--model", Arity.VALUE),
    ("--served-model-name", Arity.MANY),
    ("--tensor-parallel-size", Arity.VALUE),
    ("-tp", Arity.VALUE),
    ("--tensor_parallel_size", Arity.VALUE),
    ("--tensor", Arity.VALUE),
    ("-t", Arity.VALUE),
    ("-n2", Arity.SWITCH),
    ("-O", Arity.VALUE),
    ("-O3", Arity.SWITCH),
    ("--trust-remote-code", Arity.SWITCH),
    ("--no-trust-remote-code", Arity.SWITCH),
    ("--enable-expert-parallel", Arity.SWITCH),
    ("--disable-expert-parallel", Arity.SWITCH),
    ("-ep", Arity.SWITCH),
    ("--enable-prefix-caching", Arity.SWITCH),
    ("--no-enable-prefix-caching", Arity.SWITCH),
    ("--enforce-eager", Arity.SWITCH),
    ("--headless", Arity.SWITCH),
    ("--no-headless", None),
    ("--disable-log-stats", Arity.SWITCH),
    ("--hf-token", Arity.OPTIONAL),
    ("--lora-modules", Arity.MANY),
    ("--api-key", Arity.MANY),
    ("--cudagraph-capture-sizes", Arity.MANY),
    ("--allowed-origins", Arity.VALUE),
    ("--middleware", Arity.VALUE),
    ("--limit-mm-per-prompt", Arity.VALUE),
    ("--kv-transfer-config", Arity.VALUE),
    ("--compilation-config", Arity.VALUE),
    ("--compilation-config.mode", Arity.VALUE),
    ("--kv_transfer_config.kv_role", Arity.VALUE),
    ("-cc.mode", Arity.VALUE),
    ("--distributed-executor-backend", Arity.VALUE),
    ("--gpu-memory-utilization", Arity.VALUE),
    ("--shutdown-timeout", Arity.VALUE),
    ("--help", Arity.SWITCH),
    ("-h", Arity.SWITCH),
    ("--no-such-flag", None),
    ("-tp8", None),
    ("--tp", None),
]


@pytest.mark.parametrize("flag, arity", ARITIES)
def test_arity(flag: str, arity: Arity | None) -> None:
    assert TABLE.dialect("0.33.0").arity_of(flag) is arity


def test_older_arities() -> None:
    old = TABLE.dialect("0.9.0.1")
    assert old.arity_of("-ep") is Arity.SWITCH  # not yet registered: as where it is
    assert old.arity_of("--preemption-mode") is Arity.VALUE
    assert old.arity_of("--max-log-len") is Arity.VALUE
    assert old.repeatable == {"--middleware"}
    assert TABLE.dialect("0.8.5").repeatable == {"--middleware", "--ignore-patterns"}


def test_what_turns_a_switch_off() -> None:
    old = TABLE.releases_for("0.9.0.1")[0].option_of("--enable-prefix-caching")
    assert old == Option(
        ("--enable-prefix-caching",), Arity.SWITCH, opposites=("--no-enable-prefix-caching",)
    )
    new = TABLE.releases_for("0.33.0")[0].option_of("--disable-prefix-caching")
    assert new is not None
    assert new.spellings == ("--enable-prefix-caching",)
    assert new.opposites == ("--disable-prefix-caching", "--no-enable-prefix-caching")


# a version, a flag, the option's longest spelling, or the start of the options that it fits
LOOKED_UP: list[tuple[str, str, str | None]] = [
    ("0.33.0", "-tp", "--tensor-parallel-size"),
    ("0.33.0", "-t", "--tensor-parallel-size"),
    ("0.33.0", "-n2", "--nnodes"),
    ("0.33.0", "-qfp8", "--quantization"),
    ("0.33.0", "--max_model_len", "--max-model-len"),
    ("0.33.0", "--kv_transfer_config.kv_role", "--kv-transfer-config"),
    ("0.33.0", "--ep", "--eplb-config"),
    ("0.33.0", "--tp", None),
    ("0.33.0", "-tp8", None),
    ("0.33.0", "--pp", None),
    ("0.33.0", "-foo", None),
]


@pytest.mark.parametrize("version, flag, spelling", LOOKED_UP)
def test_option_of(version: str, flag: str, spelling: str | None) -> None:
    found = TABLE.releases_for(version)[0].option_of(flag)
    assert (found.spellings[-1] if found else None) == spelling


@pytest.mark.parametrize("flag", ["--dp", "--quant", "-d", "--enable"])
def test_ambiguous(flag: str) -> None:
    with pytest.raises(AmbiguousFlag):
        TABLE.releases_for("0.33.0")[0].option_of(flag)


def test_every_hint_is_about_a_flag_of_the_table() -> None:
    known = {flag for release in TABLE.releases for flag in release.by_spelling}
    assert set(TABLE.hints.instead) <= known
    assert set(TABLE.hints.short.values()) <= known
    assert not set(TABLE.hints.short) & known
    for group in TABLE.hints.exclusive:
        assert {flag for names in group.alternatives for flag in names} <= known


# arguments, and what per-accelerator tensor parallelism of 2 makes of them
SIZES: list[tuple[list[str], list[str] | None]] = [
    (["--tensor-parallel-size", "8"], ["--tensor-parallel-size", "2"]),
    (["--tensor_parallel_size=8"], ["--tensor_parallel_size=2"]),
    (["-tp", "8"], ["-tp", "2"]),
    (["-tp=8"], ["-tp=2"]),
    (["--tp", "8"], ["--tp", "2"]),
    (["--tp-size=8", "--tensor-parallel-size=8"], ["--tp-size=2", "--tensor-parallel-size=8"]),
    (["-tp=4", "--tensor-parallel-size=8"], ["-tp=4", "--tensor-parallel-size=2"]),
    (["vllm serve m \\\n -tp 8"], ["vllm serve m \\\n -tp=2"]),
    (
        ["vllm serve m \\\n --tensor_parallel_size 8"],
        ["vllm serve m \\\n --tensor_parallel_size=2"],
    ),
    (["-tp8"], None),
    (["--tensor", "8"], None),
    (["--max-model-len", "8"], None),
]


@pytest.mark.parametrize("args, expected", SIZES)
def test_sizes_are_written_in_place(args: list[str], expected: list[str] | None) -> None:
    dialect = TABLE.dialect("0.33.0")
    assert dialect.pipeline == ("--pp-size", "--pp", "--pipeline-parallel-size", "-pp")
    assert set_value(args, dialect.tensor, 2, dialect) == expected


# arguments, an override, and the result
OVERRIDES = [
    (["--max_model_len=8192", "--x"], ["--max-model-len=4096"], ["--max-model-len=4096", "--x"]),
    (["--enforce-eager", "m"], ["--enforce-eager"], ["--enforce-eager", "m"]),
    (
        ["--middleware=a", "--middleware=b"],
        ["--middleware=c", "--middleware=d"],
        ["--middleware=c", "--middleware=d"],
    ),
    (
        ["--served-model-name", "a", "b", "--x"],
        ["--served_model_name", "c"],
        ["--served_model_name", "c", "--x"],
    ),
    (
        ["--compilation-config.mode", "3", "m"],
        ["--compilation_config.mode=1"],
        ["--compilation_config.mode=1", "m"],
    ),
    (["-O3", "m"], ["-O1"], ["-O3", "m", "-O1"]),
]


@pytest.mark.parametrize("args, overrides, expected", OVERRIDES)
def test_override(args: list[str], overrides: list[str], expected: list[str]) -> None:
    dialect = TABLE.dialect("0.33.0")
    assert override(args, overrides, dialect) == expected
    assert override(expected, overrides, dialect) == expected
