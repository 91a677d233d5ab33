"""Editing argument lists: documented forms, dialects, and that nothing else is touched."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from ome.merging.argv import NULL_DIALECT, Arity, Dialect, Group, override, parse, set_value

TENSOR = NULL_DIALECT.tensor
KNOWN = Dialect(
    arity={
        "--trust-remote-code": Arity.SWITCH,
        "--tp-size": Arity.VALUE,
        "--lora-paths": Arity.MANY,
        "--prefill": Arity.MANY,
        "--mem-fraction-static": Arity.VALUE,
        "--log": Arity.OPTIONAL,
    },
    repeatable=frozenset({"--prefill"}),
    prefixes=True,
)


@pytest.mark.parametrize(
    ("args", "overrides", "expected"),
    [
        (["--tp-size=4", "--port=80"], ["--tp-size=8"], ["--tp-size=8", "--port=80"]),
        (
            ["--tp-size", "4", "--port", "80"],
            ["--tp-size", "8"],
            ["--tp-size", "8", "--port", "80"],
        ),
        (["--mem-frac=0.9"], ["--mem-frac", "0.8", "--quiet"], ["--mem-frac", "0.8", "--quiet"]),
        (["--port=80"], ["--len=9"], ["--port=80", "--len=9"]),
        (["--a=1"], [], ["--a=1"]),
        ([], ["--a", "1"], ["--a", "1"]),
        (["--len 4", "--x"], ["--len=9"], ["--len=9", "--x"]),
        (["--len=4"], ["--len 9"], ["--len 9"]),
        (["--r=1", "--r=2", "--a=1"], ["--a=2"], ["--r=1", "--r=2", "--a=2"]),
        (["--r=1", "--a=1", "--r=2"], ["--r=3"], ["--r=3", "--a=1"]),
        (["--a=1", "--", "--a=2"], ["--a=3", "--b"], ["--a=3", "--b", "--", "--a=2"]),
        (["--temp", "-1", "--x"], ["--temp=2"], ["--temp=2", "--x"]),
        (["model", "--x"], ["model"], ["model", "--x"]),
        (["--x"], ["-c"], ["--x", "-c"]),
        (["--a=1", "word"], ["--a"], ["word", "--a"]),
        (["--quiet"], ["word"], ["word", "--quiet"]),
        (["--a=1"], ["--a=2", "--a=3"], ["--a=3"]),
        (["-"], ["--a=2"], ["-", "--a=2"]),
        (["--", "--a"], ["--a"], ["--a", "--", "--a"]),
    ],
)
def test_override(args: list[str], overrides: list[str], expected: list[str]) -> None:
    assert override(args, overrides) == expected
    assert override(expected, overrides) == expected


@pytest.mark.parametrize(
    ("args", "overrides", "expected"),
    [
        (
            ["--trust-remote-code", "/models/x"],
            ["--trust-remote-code"],
            ["--trust-remote-code", "/models/x"],
        ),
        (["--lora-paths", "a", "b", "--x"], ["--lora-paths", "c"], ["--lora-paths", "c", "--x"]),
        (
            ["--prefill", "u1", "1", "--prefill", "u2"],
            ["--prefill", "u3", "--prefill", "u4"],
            ["--prefill", "u3", "--prefill", "u4"],
        ),
        (["--mem-frac", "0.9", "x"], ["--mem-frac=0.8"], ["--mem-frac=0.8", "x"]),
        (["--log", "--x"], ["--log=debug"], ["--log=debug", "--x"]),
    ],
)
def test_override_with_a_dialect(
    args: list[str], overrides: list[str], expected: list[str]
) -> None:
    assert override(args, overrides, KNOWN) == expected
    assert override(expected, overrides, KNOWN) == expected


SCRIPT = "python3 -m server \\\n  --tp-size 4 \\\n  --port=80 --quiet"


@pytest.mark.parametrize(
    ("script", "overrides", "expected"),
    [
        (SCRIPT, ["--tp-size=8"], "python3 -m server \\\n--tp-size=8 \\\n--port=80 --quiet"),
        (
            SCRIPT,
            ["--port", "90", "--new"],
            "python3 -m server \\\n--tp-size 4 \\\n--port 90 --quiet \\\n--new",
        ),
        ("--a=1\n--b=2", ["--b=3"], "--a=1 \\\n--b=3"),
        ("set -e\nserve --a=1 \\\n--b=2", ["--b=3"], "set -e\nserve --a=1 \\\n--b=3"),
        ("serve --a=1 \\\n--a=2", ["--a=3"], "serve --a=3"),
        ("exec sg --tp=4\n", ["--tp=8"], "exec sg --tp=8"),
        ('a \\\n--y "c \\" d" \\\n--z', ["--y=1"], "a \\\n--y=1 \\\n--z"),
        ("serve --a=1 # --a=2\n--b", ["--a=3"], "serve --a=3 # --a=2 \\\n--b"),
        ("serve --t '{\"a b\": 1}' \\\n--b", ["--t", "x"], "serve --t x \\\n--b"),
    ],
)
def test_override_in_a_script(script: str, overrides: list[str], expected: str) -> None:
    assert override([script], overrides) == [expected]
    if "\n" in expected:
        assert override([expected], overrides) == [expected]


def test_one_argument_with_a_backslash_is_no_script() -> None:
    assert override([r"--pattern=\d+"], ["--a=1"]) == [r"--pattern=\d+", "--a=1"]


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["--tp-size=8", "--x"], ["--tp-size=2", "--x"]),
        (["--tp-size", "8"], ["--tp-size", "2"]),
        (["--tp", "$(PARALLELISM_SIZE)"], ["--tp", "2"]),
        (["--tensor-parallel-size=8"], ["--tensor-parallel-size=2"]),
        (["--tp=4", "--tp-size=8"], ["--tp=4", "--tp-size=2"]),
        (["--tp-size=8", "--tp-size=4"], ["--tp-size=2", "--tp-size=4"]),
        (["a \\\n--tp-size 8 \\\n--x"], ["a \\\n--tp-size=2 \\\n--x"]),
        (["a \\\n--tp-size-x=8 --tp=1"], ["a \\\n--tp-size-x=8 --tp=2"]),
        (["serve --tp=4\n"], ["serve --tp=2\n"]),
        (["serve \\\n--x='--tp 4' # --tp=1"], None),
        (["serve --tp \\\n--y"], None),
        (["--tp-size"], None),
        (["--tp-size", "--port=1"], None),
        (["--tp-size 8"], None),
        (["-tp", "8"], None),
        (["--", "--tp=8"], None),
        (["--no-tp=8"], None),
        ([], None),
    ],
)
def test_set_value(argv: list[str], expected: list[str] | None) -> None:
    assert set_value(argv, TENSOR, 2) == expected
    if expected is not None:
        assert set_value(expected, TENSOR, 2) == expected


def test_parse_groups_words() -> None:
    assert parse(["serve", "--a", "1", "--b=2", "--c d", "--e", "--", "x"]) == [
        Group("", ("serve",)),
        Group("--a", ("--a", "1")),
        Group("--b", ("--b=2",)),
        Group("--c", ("--c d",)),
        Group("--e", ("--e",), open_ended=True),
        Group("", ("--",)),
        Group("", ("x",)),
    ]


def test_a_prefix_that_fits_flags_of_different_arity_is_not_known() -> None:
    dialect = Dialect({"--enable-a": Arity.SWITCH, "--enable-b": Arity.VALUE}, prefixes=True)
    assert dialect.arity_of("--enable") is None
    assert dialect.arity_of("--enable-a") is Arity.SWITCH
    assert Dialect({"--enable-a": Arity.SWITCH}).arity_of("--enable") is None


LOOSE = Dialect(
    arity={
        "--tp-size": Arity.VALUE,
        "--quiet": Arity.SWITCH,
        "--label": Arity.VALUE,
        "-n": Arity.VALUE,
        "-tp": Arity.VALUE,
        "-q": Arity.SWITCH,
    },
    repeatable=frozenset({"--label"}),
    prefixes=True,
    underscores=True,
    glued=True,
    dotted=True,
)


@pytest.mark.parametrize(
    ("flag", "arity"),
    [
        ("--tp_size", Arity.VALUE),
        ("--tp_s", Arity.VALUE),
        ("--tp_size.a_b", Arity.VALUE),
        ("--other.key", Arity.VALUE),
        ("-n", Arity.VALUE),
        ("-n4", Arity.SWITCH),
        ("-q4", None),
        ("-t", Arity.VALUE),
        ("-x", None),
        ("--x", None),
    ],
)
def test_arity_under_looser_rules(flag: str, arity: Arity | None) -> None:
    assert LOOSE.arity_of(flag) is arity
    strict = Dialect(LOOSE.arity)
    assert strict.arity_of(flag) is (arity if flag == "-n" else None)


def test_names_under_looser_rules() -> None:
    names = {"--tp_size": "--tp-size", "--a_b.c_d": "--a-b.c_d", "-a_b": "-a_b"}
    assert {flag: LOOSE.name_of(flag) for flag in names} == names
    assert {NULL_DIALECT.name_of(flag) for flag in names} == set(names)


@pytest.mark.parametrize(
    ("args", "overrides", "expected"),
    [
        (["--tp_size=4", "--x"], ["--tp-size=8"], ["--tp-size=8", "--x"]),
        (["--tp-size", "4"], ["--tp_size=8"], ["--tp_size=8"]),
        (["--quiet", "m"], ["--qui_et"], ["--quiet", "m", "--qui_et"]),
        (["--label=a", "--x"], ["--label=b", "--la_bel=c"], ["--label=b", "--x", "--la_bel=c"]),
        (["--c.a_b", "1", "m"], ["--c.a_b=2"], ["--c.a_b=2", "m"]),
        (["-n4", "m"], ["--x"], ["-n4", "m", "--x"]),
        (["serve \\\n--tp_size 4"], ["--tp-size=8"], ["serve \\\n--tp-size=8"]),
    ],
)
def test_override_under_looser_rules(
    args: list[str], overrides: list[str], expected: list[str]
) -> None:
    assert override(args, overrides, LOOSE) == expected
    assert override(expected, overrides, LOOSE) == expected


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["--tp_size=8", "--x"], ["--tp_size=2", "--x"]),
        (["--tp_size", "8"], ["--tp_size", "2"]),
        (["--tensor_parallel_size=8", "--tp=4"], ["--tensor_parallel_size=8", "--tp=2"]),
        (["serve \\\n--tp_size 8"], ["serve \\\n--tp_size=2"]),
        (["--tp_size"], None),
        (["--tp.size=8"], None),
    ],
)
def test_set_value_under_looser_rules(argv: list[str], expected: list[str] | None) -> None:
    assert set_value(argv, TENSOR, 2, LOOSE) == expected
    if "_" in argv[0] and "--tp=4" not in argv:
        assert set_value(argv, TENSOR, 2) is None


def test_further_spellings_are_looked_for_after_the_documented_ones() -> None:
    spellings = (*TENSOR, "-tp")
    assert set_value(["-tp", "8"], spellings, 2) == ["-tp", "2"]
    assert set_value(["-tp=8"], spellings, 2) == ["-tp=2"]
    assert set_value(["-tp=8", "--tp=4"], spellings, 2) == ["-tp=8", "--tp=2"]


flags = st.sampled_from(["--a", "--b", "--tp-size", "--mem", "-c"])
words = st.one_of(
    flags,
    st.builds("{}={}".format, flags, st.sampled_from(["1", "x y", ""])),
    st.sampled_from(["1", "word", "/models/x", "-1", "$(MODEL_PATH)"]),
)
argvs = st.lists(words, max_size=8)


@given(argvs, argvs)
def test_override_is_idempotent(args: list[str], overrides: list[str]) -> None:
    assume(args)  # empty args become the override, repeats and all
    once = override(args, overrides)
    assert override(once, overrides) == once


loose_words = st.sampled_from(
    [
        "--tp_size",
        "--tp-size=1",
        "--tp_s",
        "--la_bel",
        "--label=x",
        "-n4",
        "-tp",
        "--a.b",
        "--a.b=1",
        "m",
    ]
)


@given(st.lists(loose_words, min_size=1, max_size=8), st.lists(loose_words, max_size=8))
def test_override_is_idempotent_under_looser_rules(args: list[str], overrides: list[str]) -> None:
    once = override(args, overrides, LOOSE)
    assert override(once, overrides, LOOSE) == once


@given(argvs, argvs)
def test_override_touches_nothing_else(args: list[str], overrides: list[str]) -> None:
    wanted = {group.key or group.words[0] for group in parse(overrides)}

    def others(argv: list[str]) -> Counter[tuple[str, ...]]:
        groups = parse(argv)
        return Counter(g.words for g in groups if (g.key or g.words[0]) not in wanted)

    assert others(override(args, overrides)) == others(args)


@given(argvs, st.integers(1, 64))
def test_set_value_is_idempotent_and_changes_one_word(argv: list[str], size: int) -> None:
    edited = set_value(argv, TENSOR, size)
    if edited is not None:
        assert set_value(edited, TENSOR, size) == edited
        assert len(edited) == len(argv)
        assert sum(a != b for a, b in zip(argv, edited, strict=True)) <= 1


def test_a_very_long_argument_is_no_problem() -> None:
    huge = "x" * 2**20
    assert override([huge, "--a=1"], ["--a=2"]) == [huge, "--a=2"]
    assert set_value([huge, "--tp=1"], TENSOR, 2) == [huge, "--tp=2"]
