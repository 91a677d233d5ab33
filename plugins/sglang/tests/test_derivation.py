"""The script that derives the flag table: what it reads in SGLang's source, and what it refuses."""

from __future__ import annotations

import ast
import importlib
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

TOOLS = Path(__file__).resolve().parents[3] / "tools"

pytestmark = pytest.mark.skipif(not TOOLS.exists(), reason="the script is part of OME's repository")


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The script, which finds its readers beside itself as when it is run."""
    monkeypatch.syspath_prepend(str(TOOLS))
    return importlib.import_module("derive_flags")


@pytest.fixture
def reader(script: ModuleType) -> ModuleType:
    return importlib.import_module("flag_readers.sglang")


# source, its options: spellings, arity, whether it adds up
CALLS: list[tuple[str, list[tuple[tuple[str, ...], str, bool]]]] = [
    ('p.add_argument("--a", "--b", type=int)', [(("--a", "--b"), "one", False)]),
    ('p.add_argument("--a", action="store_true")', [(("--a",), "none", False)]),
    ('p.add_argument("--a", nargs="+")', [(("--a",), "many", False)]),
    ('p.add_argument("--a", nargs="?", const=1)', [(("--a",), "optional", False)]),
    ('p.add_argument("--a", action="append")', [(("--a",), "one", True)]),
    ('p.add_argument("--a", action=DeprecatedAction)', [(("--a",), "none", False)]),
    (
        'p.add_argument("--a", action=argparse.BooleanOptionalAction)',
        [(("--a",), "none", False), (("--no-a",), "none", False)],
    ),
    ("p.add_argument(*names)", []),
]

FIELDS: list[tuple[str, list[tuple[tuple[str, ...], str, bool]]]] = [
    ('a_b: A[int, "help"] = 1', [(("--a-b",), "one", False)]),
    ('a: A[bool, "help"] = False', [(("--a",), "none", False)]),
    ('a: A[Optional[bool], Arg(help="h")] = None', [(("--a",), "none", False)]),
    ("a: A[list[str] | None, Arg()] = None", [(("--a",), "many", False)]),
    ('a: A[List[str], Arg(nargs="*"), NS("x")]', [(("--a",), "many", False)]),
    ("a: A[list[str], Arg(type_parser=json_list_type)]", [(("--a",), "one", False)]),
    ('a: A[int, Arg(cli_name="--b", aliases=["--c"])]', [(("--b", "--c"), "one", False)]),
    (
        'a: A[str, Arg(action=LoRAPathAction, action_kwargs={"nargs": "*"})]',
        [(("--a",), "many", False)],
    ),
    ("a: A[int, Arg(no_cli=True)] = 1", []),
    ('a: A[int, Derived("doc")]', []),
    ("a: int = 1", []),
]


@pytest.mark.parametrize(
    "source, options", [*CALLS, *((f"class X:\n    {text}", found) for text, found in FIELDS)]
)
def test_options(reader: ModuleType, source: str, options: list[Any]) -> None:
    assert list(reader.read_options(ast.parse(source))) == options


@pytest.mark.parametrize(
    "source", ['p.add_argument("--a", action=NewAction)', 'p.add_argument("--a", **given)']
)
def test_what_is_unknown_is_refused(reader: ModuleType, source: str) -> None:
    with pytest.raises(ValueError):
        list(reader.read_options(ast.parse(source)))


def test_table(script: ModuleType, tmp_path: Path) -> None:
    wheels = []
    for version, flags in {"0.5.10": "--b --a", "0.5.9": "--a --b", "0.5.11.post1": "--a"}.items():
        wheels.append(tmp_path / f"sglang-{version}-py3-none-any.whl")
        names = ", ".join(f'"{flag}"' for flag in flags.split())
        with zipfile.ZipFile(wheels[-1], "w") as wheel:
            wheel.writestr("sglang/srt/server_args.py", f"p.add_argument({names})")
    found = script.table(dict(script.read_package("sglang", path) for path in wheels))
    assert found == {
        "versions": ["0.5.9", "0.5.10", "0.5.11.post1"],
        "options": [["--a", "one", "2"], ["--a --b", "one", "0-1"], ["-h --help", "none", "0-2"]],
    }
    assert script.spans([0, 1, 3]) == "0-1 3"
