"""The flag table: what it holds, and the dialect that follows from it."""

from __future__ import annotations

import importlib
import json
import zipfile
from pathlib import Path
from typing import Any

import pytest

from ome.engines import Arity
from ome_engine_tokenspeed.flags import TABLE

TOOLS = Path(__file__).resolve().parents[3] / "tools"


def test_flags_of_each_release() -> None:
    counts = {one.version: len(one.by_spelling) for one in TABLE.releases}
    assert counts == {"0.1.0": 303, "0.1.1": 370}


# a flag, and its arity in the newest release, compared by hand with the release's source
ARITIES: list[tuple[str, Arity | None]] = [
    ("--model", Arity.VALUE),
    ("--model-path", Arity.VALUE),
    ("--tp", Arity.VALUE),
    ("--tensor-parallel-size", Arity.VALUE),
    ("--ep-size", Arity.VALUE),
    ("--enable-expert-parallel", Arity.SWITCH),
    ("--trust-remote-code", Arity.SWITCH),
    ("--no-trust-remote-code", Arity.SWITCH),
    ("--cudagraph-capture-sizes", Arity.MANY),
    ("--drain-timeout", Arity.VALUE),
    ("--headless", Arity.SWITCH),
    ("--no-tokenizer-cache-enable-l0", Arity.SWITCH),
    ("--control-port", Arity.VALUE),
    ("--policy", Arity.VALUE),
    ("--prometheus-port", Arity.VALUE),
    ("--language-model-only", Arity.SWITCH),
    ("--tensor", None),
    ("--max_model_len", None),
    ("-tp", None),
]


@pytest.mark.parametrize("flag, arity", ARITIES)
def test_arity(flag: str, arity: Arity | None) -> None:
    assert TABLE.dialect("0.1.1").arity_of(flag) is arity


ENGINE = """
def add_cli_args(parser):
    parser.add_argument("model_path", nargs="?")
    parser.add_argument("--model", "--model-path", type=str)
    parser.add_argument("--port", type=int)
    parser.add_argument("--quick", action=argparse.BooleanOptionalAction)
"""
SPLIT = '_ORCH_FLAGS = {"--drain-timeout"}\n'
SERVE = '_TOKENIZER_CACHE_FLAGS = ("--cache",)\n'
COMMANDS = """
serve_parser.add_argument("--headless", action="store_true")
env_parser.add_argument("--verbose", action="store_true")
"""
GATEWAY = """
def add_cli_args(parser, prefix):
    parser.add_argument("--port", nargs="*")
    parser.add_argument(f"--{prefix}policy", type=str)
    parser.add_argument(f"--{prefix}urls", nargs="*")
"""


def wheels(folder: Path, *, required: str = "1.0", split: str = SPLIT) -> Path:
    engine = folder / "tokenspeed-9.9.9-py3-none-any.whl"
    with zipfile.ZipFile(engine, "w") as wheel:
        wheel.writestr("tokenspeed/runtime/utils/server_args.py", ENGINE)
        wheel.writestr("tokenspeed/cli/_argsplit.py", split)
        wheel.writestr("tokenspeed/cli/serve_smg.py", SERVE)
        wheel.writestr("tokenspeed/cli/__main__.py", COMMANDS)
        wheel.writestr(
            "tokenspeed-9.9.9.dist-info/METADATA", f"Requires-Dist: tokenspeed-smg=={required}\n"
        )
    with zipfile.ZipFile(folder / "tokenspeed_smg-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("smg/router_args.py", GATEWAY)
    return engine


def reader(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.syspath_prepend(str(TOOLS))
    return importlib.import_module("flag_readers.tokenspeed")


@pytest.mark.skipif(not TOOLS.exists(), reason="the tool is part of OME's repository")
def test_the_reader(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = reader(monkeypatch).read
    assert sorted(read(wheels(tmp_path))) == [
        (("--drain-timeout",), "one", False),
        (("--headless",), "none", False),
        (("--model", "--model-path"), "one", False),
        (("--no-cache",), "none", False),
        (("--no-quick",), "none", False),
        (("--policy",), "one", False),
        (("--port",), "one", False),
        (("--quick",), "none", False),
        (("--urls",), "many", False),
    ]


@pytest.mark.skipif(not TOOLS.exists(), reason="the tool is part of OME's repository")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"required": "2.0"}, "tokenspeed_smg-2.0 doesn't lie beside it"),
        ({"split": "x = 1\n"}, "no _ORCH_FLAGS"),
    ],
)
def test_what_the_reader_refuses(
    changes: Any, message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ValueError, match=message):
        reader(monkeypatch).read(wheels(tmp_path, **changes))


def test_the_table_is_one_line_an_option() -> None:
    path = Path(__file__).parents[1] / "ome_engine_tokenspeed" / "flags.json"
    assert len(json.loads(path.read_text())["options"]) == path.read_text().count("\n  [")
