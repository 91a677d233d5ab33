"""`argsPatch`: what each operation does to a command line, whatever form it has."""

from __future__ import annotations

import copy
import shlex
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ome.merging.argspatch import (
    apply_operation,
    flags_of,
    pending,
    without_pending,
    without_pending_anywhere,
    words_of,
)
from ome.merging.argv import NULL_DIALECT, Arity, Dialect, parse
from ome.merging.schema import CONTAINER
from ome.merging.strategic import merge, merge_chain

Json = dict[str, Any]
KNOWN = Dialect(
    arity={
        "--trust-remote-code": Arity.SWITCH,
        "--tp-size": Arity.VALUE,
        "--mem-fraction-static": Arity.VALUE,
        "--lora-paths": Arity.MANY,
        "--prefill": Arity.MANY,
    },
    repeatable=frozenset({"--prefill"}),
    prefixes=True,
    aliases={"--model": "--model-path"},
)
SHELL = ["/bin/bash", "-c"]


def to(name: str, value: str | None = None) -> Json:
    return {"set": {"name": name, **({} if value is None else {"value": value})}}


LISTS: list[tuple[str, list[str], Json, list[str]]] = [
    ("a value in one word", ["--a=1", "--b"], to("--a", "2"), ["--a=2", "--b"]),
    ("a value in two words", ["--a", "1", "--b"], to("--a", "2"), ["--a", "2", "--b"]),
    ("a value that looks like a flag", ["--a", "1"], to("--a", "-x"), ["--a=-x"]),
    ("an empty value", ["--a", "1"], to("--a", ""), ["--a="]),
    ("a bare flag", ["--a", "--b"], to("--a"), ["--a", "--b"]),
    ("a flag that gets a value", ["--a", "--b"], to("--a", "1"), ["--a=1", "--b"]),
    ("a value that goes", ["--a=1", "--b"], to("--a"), ["--a", "--b"]),
    ("a new flag", ["--a=1"], to("--b", "2"), ["--a=1", "--b=2"]),
    ("a new bare flag", ["--a=1"], to("--b"), ["--a=1", "--b"]),
    ("a new flag before --", ["x", "--", "y"], to("--b", "2"), ["x", "--b=2", "--", "y"]),
    ("a flag that repeats", ["--a=1", "--b", "--a=2"], to("--a", "3"), ["--a=3", "--b"]),
    (
        "another spelling",
        ["--tp", "8", "x"],
        to("--tensor-parallel-size", "4"),
        ["--tensor-parallel-size", "4", "x"],
    ),
    ("two spellings", ["--tp=8", "--tp-size=2"], to("--tp", "4"), ["--tp=4"]),
    (
        "a prefix",
        ["--mem-frac=0.9"],
        to("--mem-fraction-static", "0.8"),
        ["--mem-fraction-static=0.8"],
    ),
    ("by a prefix", ["--mem-fraction-static=0.9"], to("--mem-frac", "0.8"), ["--mem-frac=0.8"]),
    ("an alias", ["--model", "m"], to("--model-path", "n"), ["--model-path", "n"]),
    (
        "a switch takes no value",
        ["--trust-remote-code", "/models/x"],
        {"unset": "--trust-remote-code"},
        ["/models/x"],
    ),
    (
        "a switch doesn't come to take one",
        ["--quiet", "--port", "80", "/models/x"],
        {"unset": "--port"},
        ["/models/x", "--quiet"],
    ),
    ("a value goes with its flag", ["--a", "1", "--b"], {"unset": "--a"}, ["--b"]),
    ("all values go", ["--lora-paths", "a", "b", "--b"], {"unset": "--lora-paths"}, ["--b"]),
    (
        "every repeat goes",
        ["--prefill", "a", "1", "x", "--prefill", "b"],
        {"unset": "--prefill"},
        [],
    ),
    (
        "every spelling goes",
        ["--tp=1", "--x", "--tp-size", "2"],
        {"unset": "--tensor-parallel-size"},
        ["--x"],
    ),
    ("what follows -- stays", ["--", "--a=1"], {"unset": "--a"}, ["--", "--a=1"]),
    ("whole flags only", ["--abc=1"], {"unset": "--ab"}, ["--abc=1"]),
    (
        "words are appended as they are",
        ["--a", "--"],
        {"append": ["--b c", "--a"]},
        ["--a", "--", "--b c", "--a"],
    ),
]


@pytest.mark.parametrize(
    ("args", "operation", "expected"), [c[1:] for c in LISTS], ids=[c[0] for c in LISTS]
)
def test_lists(args: list[str], operation: Json, expected: list[str]) -> None:
    container = {"name": "c", "args": args}
    before = copy.deepcopy(container)
    edited, _ = apply_operation(container, operation, KNOWN)
    assert edited.get("args", []) == expected
    assert container == before
    if "append" not in operation:
        assert apply_operation(edited, operation, KNOWN)[0] == edited


SCRIPT = "set -e\nexec python3 -m engine \\\n  --tp 8 \\\n  --port=80 \\\n  --quiet"
WHOLE: list[tuple[str, Json, Json, Json]] = [
    (
        "a flag of the command",
        {"command": ["run", "--a=1"]},
        to("--a", "2"),
        {"command": ["run", "--a=2"]},
    ),
    (
        "args before the command",
        {"command": ["run", "--a=1"], "args": ["--a=2"]},
        to("--a", "3"),
        {"command": ["run", "--a=1"], "args": ["--a=3"]},
    ),
    (
        "unset takes it from both",
        {"command": ["run", "--a=1"], "args": ["--a=2"]},
        {"unset": "--a"},
        {"command": ["run"]},
    ),
    ("no command line at all", {}, to("--a", "1"), {"args": ["--a=1"]}),
    (
        "words where there are none",
        {"command": ["run"]},
        {"append": ["x"]},
        {"command": ["run"], "args": ["x"]},
    ),
    (
        "a script in args",
        {"command": SHELL, "args": [SCRIPT]},
        to("--tp", "4"),
        {
            "command": SHELL,
            "args": ["set -e\nexec python3 -m engine \\\n--tp 4 \\\n--port=80 \\\n--quiet"],
        },
    ),
    (
        "a script in the command",
        {"command": [*SHELL, SCRIPT]},
        {"unset": "--port"},
        {"command": [*SHELL, "set -e\nexec python3 -m engine \\\n--tp 8 \\\n--quiet"]},
    ),
    (
        "a script of one line",
        {"command": ["sh", "-ec"], "args": ["engine --tp 8", "name"]},
        {"unset": "--tp"},
        {"command": ["sh", "-ec"], "args": ["engine", "name"]},
    ),
    (
        "a value is quoted for the shell",
        {"command": SHELL, "args": ["engine --json=x"]},
        to("--json", '{"a": 1}'),
        {"command": SHELL, "args": ["engine --json='{\"a\": 1}'"]},
    ),
    (
        "a new flag of a script",
        {"command": SHELL, "args": ["engine --a\n# the end\n"]},
        to("--b", "2"),
        {"command": SHELL, "args": ["engine --a \\\n--b=2\n# the end"]},
    ),
    (
        "words come before the comment of a script's last command",
        {"command": SHELL, "args": ["engine --a # why"]},
        {"append": ["$FLAGS", "x"]},
        {"command": SHELL, "args": ["engine --a $FLAGS x # why"]},
    ),
    (
        "a script without a shell",
        {"args": ["engine \\\n  --a=1"]},
        {"append": ["--b"]},
        {"args": ["engine \\\n  --a=1 \\\n--b"]},
    ),
    (
        "the shell's own flag is none of the engine's",
        {"command": SHELL, "args": ["engine -c x"]},
        {"unset": "-c"},
        {"command": SHELL, "args": ["engine"]},
    ),
    (
        "a shell without a script",
        {"command": ["bash", "run.sh", "--a=1"]},
        {"unset": "--a"},
        {"command": ["bash", "run.sh"]},
    ),
    ("an operation of a kind that isn't known", {"args": ["x"]}, {"shout": "x"}, {"args": ["x"]}),
]


@pytest.mark.parametrize(
    ("container", "operation", "expected"), [c[1:] for c in WHOLE], ids=[c[0] for c in WHOLE]
)
def test_command_lines(container: Json, operation: Json, expected: Json) -> None:
    before = copy.deepcopy(container)
    assert apply_operation(container, operation)[0] == expected
    assert container == before


def test_what_unset_finds() -> None:
    assert apply_operation({"args": ["--a"]}, {"unset": "--b"}) == ({"args": ["--a"]}, False)
    assert apply_operation({"args": ["--a"]}, {"unset": "--a"}) == ({}, True)
    assert apply_operation({"command": [*SHELL, "x --a"]}, {"unset": "--b"})[1] is False


def test_where_words_of_a_flag_stand() -> None:
    container = {"command": ["run", "--tp", "8"], "args": ["x", "--tp-size=4", "--a"]}
    assert flags_of(container) == ["--tp-size", "--a", "--tp"]
    assert list(words_of(container, "--tensor-parallel-size")) == [
        ("args", 1),
        ("command", 1),
        ("command", 2),
    ]


def test_no_container_keeps_its_operations() -> None:
    container = {"args": ["x"], "argsPatch": [{"unset": "--a"}]}
    assert pending(container) == [{"unset": "--a"}]
    assert pending({"argsPatch": None}) == []
    assert without_pending(container) == {"args": ["x"]}
    assert without_pending_anywhere({"runner": container, "containers": [container, 1]}) == {
        "runner": {"args": ["x"]},
        "containers": [{"args": ["x"]}, 1],
    }


OPERATIONS = st.one_of(
    st.builds(to, st.sampled_from(["--a", "--b", "--tp"]), st.sampled_from(["1", "x y", None])),
    st.builds(lambda flag: {"unset": flag}, st.sampled_from(["--a", "--b", "--tp-size"])),
    st.builds(lambda word: {"append": [word]}, st.sampled_from(["--a", "x", "--b=1"])),
)
LAYERS = st.fixed_dictionaries(
    {},
    optional={
        "args": st.lists(st.sampled_from(["--a=1", "--b", "--tp", "8", "x"]), max_size=4),
        "argsPatch": st.lists(OPERATIONS, max_size=3),
    },
)


def carried_out(container: Json) -> Json:
    edited = without_pending(container)
    for operation in pending(container):
        edited, _ = apply_operation(edited, operation)
    return {name: value for name, value in edited.items() if value}


@given(LAYERS, LAYERS, LAYERS)
def test_operations_join_in_any_grouping(a: Json, b: Json, c: Json) -> None:
    left = merge(merge(a, b, CONTAINER), c, CONTAINER)
    right = merge(a, merge(b, c, CONTAINER), CONTAINER)
    for name in ("args", "argsPatch"):
        assert (left.get(name) or []) == (right.get(name) or [])


@given(st.lists(LAYERS, max_size=4))
def test_operations_at_the_end_are_operations_layer_by_layer(layers: list[Json]) -> None:
    one_by_one: Json = {}
    for layer in layers:
        one_by_one = carried_out(merge(one_by_one, layer, CONTAINER))
    assert carried_out(merge_chain(layers, CONTAINER)) == one_by_one


@given(st.lists(st.sampled_from(["--a", "1", "--b=2", "x", "--c", "--"]), max_size=6), OPERATIONS)
def test_other_words_stay_and_set_and_unset_do_what_they_say(
    args: list[str], operation: Json
) -> None:
    container = {"command": ["run"], "args": args}
    edited, found = apply_operation(container, operation)
    groups = parse(edited.get("args", []))
    if "append" in operation:
        assert edited["args"] == [*args, *operation["append"]]
        return
    flag = operation.get("unset") or operation["set"]["name"]
    name = NULL_DIALECT.flag_of(flag)
    mine = [group for group in groups if group.key and NULL_DIALECT.flag_of(group.key) == name]
    assert len(mine) == ("set" in operation)
    assert found or edited == container
    kept = sorted(word for group in groups if group not in mine for word in group.words)
    was = [
        group for group in parse(args) if not group.key or NULL_DIALECT.flag_of(group.key) != name
    ]
    assert kept == sorted(word for group in was for word in group.words)


@given(st.text(st.sampled_from("ab'\" $\\;|{}"), min_size=1, max_size=6))
def test_a_value_means_the_same_in_a_script_and_in_a_list(value: str) -> None:
    script, _ = apply_operation({"command": SHELL, "args": ["engine"]}, to("--x", value))
    assert shlex.split(script["args"][0].replace("\\\n", "")) == ["engine", f"--x={value}"]
