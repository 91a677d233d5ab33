"""Shell scripts are edited where that is safe, and left alone, with a word, where it isn't."""

from __future__ import annotations

from typing import Any

import pytest

from ome.merging.argspatch import has_operators
from ome.merging.argv import set_value
from ome.planning.plan import Hold
from ome.testing.builders import ENTRY, container, model, obj, plan_of, runtime, service

Json = dict[str, Any]
TP = ("--tp-size", "--tp")

OPERATORS = [
    ("serve --port 1; echo bye", True),
    ("serve --port 1 && echo", True),
    ("serve | tee log", True),
    ("serve > log", True),
    ("(serve)", True),
    ("serve --n $(nvidia-smi -L | wc -l)", True),
    ("serve `x`", True),
    ("serve <<E\nx\nE", True),
    ("serve --port 1", False),
    ("serve --name='a;b' --other=\"c|d\"", False),
    ("serve --name=a\\;b", False),
    ("serve --model $(MODEL_PATH) $SIZE", False),
    ("# a; comment\nserve \\\n  --port 1 # (really)", False),
]


@pytest.mark.parametrize(("script", "expected"), OPERATORS)
def test_operators(script: str, expected: bool) -> None:
    assert has_operators(script) is expected


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("a \\\n --tp-size 8; echo done", "a \\\n --tp-size=4; echo done"),
        ("a \\\n --tp-size=8&& b", "a \\\n --tp-size=4&& b"),
        ("(a \\\n --tp 8)", "(a \\\n --tp=4)"),
        ("a \\\n --tp-size $(N)", "a \\\n --tp-size=4"),
        ("a \\\n --tp-size $(nproc --all)", None),
        ("a \\\n --tp-size ; b", None),
    ],
)
def test_a_size_is_set_and_nothing_else_is_lost(script: str, expected: str | None) -> None:
    found = set_value([script], TP, 4)
    assert found == (None if expected is None else [expected])


def shell(script: str, **runner: Any) -> Json:
    return {
        "runner": {
            "name": "ome-container",
            "image": "e:1",
            "command": ["/bin/sh", "-c"],
            "args": [script],
            **runner,
        }
    }


def patched(script: str, *operations: Json) -> Any:
    own = {"runner": {"name": "ome-container", "argsPatch": list(operations)}}
    return plan_of(runtime(shell(script)), service(engine=own))


def test_a_plain_script_is_edited() -> None:
    rendered = patched("serve --port 8080", {"set": {"name": "--port", "value": "1"}})
    assert container(rendered)["args"] == ["serve --port 1"]


@pytest.mark.parametrize(
    "operation",
    [{"set": {"name": "--port", "value": "1"}}, {"unset": "--port"}, {"append": ["--x"]}],
)
def test_a_script_of_several_commands_is_refused(operation: Json) -> None:
    rendered = patched("serve --port 8080; echo bye", operation)
    held = rendered.actions["engine"]
    assert isinstance(held, Hold)
    (problem,) = held.problems
    assert problem.code == "ScriptNotEditable"
    assert problem.message == (
        "argsPatch can't edit the script of engine container ome-container: it is more than one plain command"
    )
    assert problem.fix == "write the command and its flags as one list, or edit the script itself"


def classed(script: str) -> Any:
    settings = {"gpu": {"runtimeArgsOverride": ["--mem=0.8"]}}
    return plan_of(
        runtime(
            shell(script),
            supportedModelFormats=[{**ENTRY, "acceleratorConfig": settings}],
            acceleratorRequirements={"acceleratorClasses": ["gpu"]},
        ),
        model(),
        obj("AcceleratorClass", "gpu", {"discovery": {}, "capabilities": {}}),
        service(model={"name": "m"}, acceleratorSelector={"acceleratorClass": "gpu"}),
    )


def test_a_class_edits_a_script_of_one_line() -> None:
    rendered = classed("serve --mem=0.9")
    assert container(rendered)["args"] == ["serve --mem=0.8"]
    assert not rendered.warnings


def test_a_class_says_what_a_script_can_not_take() -> None:
    rendered = classed("serve --mem=0.9; echo done")
    assert container(rendered)["args"] == ["serve --mem=0.9; echo done"]
    assert [warning.message for warning in rendered.warnings] == [
        "the engine doesn't get the settings of class gpu: --mem=0.8: a shell script can't take them"
    ]
