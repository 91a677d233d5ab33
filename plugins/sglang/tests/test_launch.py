"""Reading a launch: which words are SGLang's arguments, and where they stand."""

from __future__ import annotations

import pytest

from ome_engine_sglang.launch import Launch, read_launch

ARGUMENTS = ("--port", "1", "--tp-size=2")

# argument vector, where the arguments start
PLAIN = [
    (["python3", "-m", "sglang.launch_server"], 3),
    (["env", "-u", "X", "A=B", "python3", "-u", "-m", "sglang.launch_server"], 8),
    (["exec", "A=B", "python3", "-msglang.launch_server"], 4),
    (["python3", "sglang/launch_server.py"], 2),
]


@pytest.mark.parametrize("before, start", PLAIN)
def test_plain(before: list[str], start: int) -> None:
    assert read_launch([*before, *ARGUMENTS]) == Launch(ARGUMENTS, start)


def test_serve() -> None:
    assert read_launch(["sglang", "serve", "m", *ARGUMENTS]) == Launch(
        ("m", *ARGUMENTS), 2, is_serve=True
    )


# script, its arguments
SCRIPTS: list[tuple[str, list[str]]] = [
    ("sglang serve m --port 1", ["m", "--port", "1"]),
    ("sglang serve \\\n  m \\\n  --port 1\n", ["m", "--port", "1"]),
    ("sglang serve 'a b' \"c d\" e\\ f", ["a b", "c d", "e f"]),
    ("sglang serve --j='{\"a\": [1; 2]}'", ['--j={"a": [1; 2]}']),
    ('sglang serve --j="{\\"a\\": 1}"', ['--j={"a": 1}']),
    ("sglang serve a#b # c", ["a#b"]),
    ("# first\nsglang serve m\n# last", ["m"]),
    ("sglang serve '' m", ["", "m"]),
    ("sglang serve --tp $N --host=${IP}", ["--tp", "$N", "--host=${IP}"]),
    ("sglang serve $(MODEL_PATH) --tp '$(N)'", ["$(MODEL_PATH)", "--tp", "$(N)"]),
]


@pytest.mark.parametrize("text, arguments", SCRIPTS)
def test_script(text: str, arguments: list[str]) -> None:
    expected = Launch(tuple(arguments), 2, script=True, is_serve=True)
    assert read_launch(["sh", "-c", text]) == expected


def test_words_after_a_script_are_not_its_arguments() -> None:
    found = read_launch(["sh", "-c", "sglang serve m", "--port", "1"])
    assert found == Launch(("m",), 2, script=True, is_serve=True)
