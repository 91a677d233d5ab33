"""The reader that derives the flag table: what it reads in vLLM's source, and what it refuses."""

from __future__ import annotations

import importlib
import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

TOOLS = Path(__file__).resolve().parents[3] / "tools"

pytestmark = pytest.mark.skipif(not TOOLS.exists(), reason="the tool is part of OME's repository")

SERVE = """
from vllm.entrypoints.cli_args import make_arg_parser

class ServeSubcommand(CLISubcommand):
    def subparser_init(self, subparsers):
        serve_parser = subparsers.add_parser("serve")
        serve_parser = make_arg_parser(serve_parser)
        serve_parser.epilog = "more"
        return serve_parser
"""
CLI_ARGS = """
from vllm.config import config
from vllm.engine.arg_utils import AsyncEngineArgs

@config
class BaseArgs:
    chat_template: str | None = None
    middleware: list[str] = field(default_factory=list)
    origins: list[str] = None

    @classmethod
    def _customize_cli_kwargs(cls, frontend_kwargs):
        frontend_kwargs["chat_template"]["type"] = str
        return frontend_kwargs

    @classmethod
    def add_cli_args(cls, parser):
        from vllm.engine.arg_utils import get_kwargs
        frontend_kwargs = get_kwargs(cls)
        frontend_kwargs = cls._customize_cli_kwargs(frontend_kwargs)
        for key, value in frontend_kwargs.items():
            extra_flags = value.pop("flags", [])
            group.add_argument(*extra_flags, f"--{key.replace('_', '-')}", **value)
        return parser

@config
class FrontendArgs(BaseArgs):
    port: int = 8000

    @classmethod
    def _customize_cli_kwargs(cls, frontend_kwargs):
        frontend_kwargs = super()._customize_cli_kwargs(frontend_kwargs)
        frontend_kwargs["middleware"]["action"] = "append"
        if "nargs" in frontend_kwargs["middleware"]:
            del frontend_kwargs["middleware"]["nargs"]
        del frontend_kwargs["origins"]["nargs"]
        return frontend_kwargs

def make_arg_parser(parser):
    parser.add_argument("model_tag", nargs="?")
    parser = FrontendArgs.add_cli_args(parser)
    parser = AsyncEngineArgs.add_cli_args(parser)
    return parser
"""
ENGINE = """
from vllm.config import ModelConfig, ParallelConfig

OLD_DEPRECATION_MESSAGE = "no longer"

class EngineArgs:
    @staticmethod
    def add_cli_args(parser):
        model_kwargs = get_kwargs(ModelConfig)
        if not ("serve" in sys.argv[1:] and "--help" in sys.argv[1:]):
            model_group.add_argument("--model", **model_kwargs["model"])
        %s
        return parser

class AsyncEngineArgs(EngineArgs):
    @staticmethod
    def add_cli_args(parser, async_args_only=False):
        load_general_plugins()
        if not async_args_only:
            parser = EngineArgs.add_cli_args(parser)
        return parser
"""
CONFIG_INIT = """
from .model import ModelConfig

def config(cls):
    return cls
"""
MODEL = """
from typing import TYPE_CHECKING, Annotated, Any, Literal
from vllm.config import config
import torch

if TYPE_CHECKING:
    Fancy = list[int]
else:
    Fancy = Any

Mode = Literal["a", "b"]
Names = list[str] | str

@config
class Inner:
    x: int

class Table(dict):
    pass

@config
class ModelConfig:
    counter: ClassVar[int] = 0
    start: InitVar[int] = 0
    model: str = "m"
    eager: bool = False
    maybe: Optional[bool] = None
    token: bool | str | None = None
    mode: Mode = "a"
    names: Names | None = None
    pair: tuple[int, int] = (1, 2)
    many: tuple[int, ...] = ()
    unique: set[str] = None
    inner: Inner = None
    either: Inner | list[int] = None
    table: Table = None
    extra: dict[str, Any] = None
    length: Annotated[int, "x"] = 1
    skipped: SkipValidation[list[str]] = None
    fancy: Fancy = None
    quoted: "list[int]" = None
    dtype: torch.dtype = None
"""
MARKERS = "contains_type(type_hints, set)\n# type_hints == {bool, str, type(None)}\n"

Reader = Callable[..., dict[str, tuple[str, bool, bool, tuple[str, ...]]]]


def files(
    statement: str, *, model: str = MODEL, utils: str = "", markers: str = ""
) -> dict[str, str]:
    """The files of a small package whose engine registers an option by a statement."""
    return {
        "vllm/entrypoints/cli/serve.py": SERVE,
        "vllm/entrypoints/cli_args.py": CLI_ARGS,
        "vllm/engine/arg_utils.py": ENGINE % statement + "\n" + markers,
        "vllm/config/__init__.py": CONFIG_INIT,
        "vllm/config/model.py": model,
        "vllm/utils/__init__.py": utils,
    }


def write(path: Path, content: dict[str, str]) -> Path:
    """A wheel, or a source archive with its own folder."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path, "w") as wheel:
            for name, text in content.items():
                wheel.writestr(name, text)
        return path
    with tarfile.open(path, "w:gz") as archive:
        for name, text in content.items():
            info = tarfile.TarInfo(f"vllm-1.0.0/{name}")
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return path


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Reader:
    """Reads a small package; gives what each first spelling was read as."""
    monkeypatch.syspath_prepend(str(TOOLS))
    tool = importlib.import_module("flag_readers.vllm")

    def ask(statement: str = "pass", *, suffix: str = ".tar.gz", **more: Any) -> Any:
        path = write(tmp_path / f"vllm-1.0.0{suffix}", files(statement, **more))
        return {option.names[0]: tuple(option[1:]) for option in tool.read(path)}

    return ask


def test_what_is_always_there(read: Reader) -> None:
    expected = {
        "--chat-template": ("one", False, False, ()),
        "--middleware": ("one", True, False, ()),
        "--origins": ("one", False, False, ()),
        "--port": ("one", False, False, ()),
        "--model": ("one", False, False, ()),
        "--help": ("none", False, False, ()),
    }
    assert read() == expected
    assert read(suffix="-cp38-abi3-manylinux1_x86_64.whl") == expected


# a field of the configuration class, its arity
FIELDS = {
    "eager": "none",
    "maybe": "none",
    "token": "optional",
    "mode": "one",
    "names": "many",
    "pair": "many",
    "many": "many",
    "unique": "many",
    "inner": "one",
    "either": "one",
    "table": "one",
    "extra": "one",
    "length": "one",
    "skipped": "many",
    "fancy": "one",
    "quoted": "one",
    "dtype": "one",
}


@pytest.mark.parametrize("field, arity", FIELDS.items())
def test_fields(read: Reader, field: str, arity: str) -> None:
    found = read(f'g.add_argument("--x", "-x", **model_kwargs["{field}"])', markers=MARKERS)
    assert found["--x"][0] == arity


def test_older_releases_read_fields_otherwise(read: Reader) -> None:
    assert read('g.add_argument("--x", **model_kwargs["token"])')["--x"][0] == "none"
    assert read('g.add_argument("--x", **model_kwargs["unique"])')["--x"][0] == "one"


# a statement, what it registers
STATEMENTS: list[tuple[str, dict[str, tuple[str, bool, bool, tuple[str, ...]]]]] = [
    ('g.add_argument("--x", action="store_true")', {"--x": ("none", False, False, ())}),
    ('g.add_argument("--x", type=int, nargs="?")', {"--x": ("optional", False, False, ())}),
    ('g.add_argument("--x", deprecated=True)', {"--x": ("one", False, True, ())}),
    ('g.add_argument("--x", help=OLD_DEPRECATION_MESSAGE)', {"--x": ("one", False, True, ())}),
    ('g.add_argument("--x", help="[DEPRECATED] gone")', {"--x": ("one", False, True, ())}),
    (
        'g.add_argument("--x", action=argparse.BooleanOptionalAction)',
        {"--x": ("none", False, False, ("--no-x",))},
    ),
    (
        'g.add_argument("--x", **{**model_kwargs["names"], "default": None, "nargs": "?"})',
        {"--x": ("optional", False, False, ())},
    ),
    (
        'given = model_kwargs["names"]; given["type"] = str; g.add_argument("--x", **given)',
        {"--x": ("many", False, False, ())},
    ),
    (
        'model_kwargs["mode"]["choices"].remove("a"); model_kwargs["mode"]["help"] += "x"',
        {},
    ),
    (
        'for arg, kind in [("--x", str), ("--y", bool)]: g.add_argument(arg, type=kind, deprecated=True)',
        {"--x": ("one", False, True, ()), "--y": ("one", False, True, ())},
    ),
]


@pytest.mark.parametrize("statement, expected", STATEMENTS)
def test_statements(read: Reader, statement: str, expected: dict[str, Any]) -> None:
    found = read(statement)
    assert {name: found[name] for name in found.keys() - read().keys()} == expected


def test_what_turns_a_switch_off(read: Reader) -> None:
    statement = 'g.add_argument("--enable-x", "-x", action=argparse.BooleanOptionalAction)'
    assert read(statement)["--enable-x"][3] == ("--no-enable-x",)
    found = read(statement, utils="class EnableDisableAction: pass")
    assert found["--enable-x"][3] == ("--no-enable-x", "--disable-x")


def test_short_form_of_the_optimisation_level(read: Reader) -> None:
    statement = 'g.add_argument("--optimization-level", type=int)'
    assert "-O" not in read(statement)
    utils = 'processed_args += ["--optimization-level", level]'
    assert "-O" in read(statement, utils=utils)


# statements that aren't understood
UNREAD = [
    "register(parser)",
    "while True: break",
    "g.add_argument(*names)",
    'g.add_argument("--x", **given)',
    'g.add_argument("--x", surprise=1)',
    'g.add_argument("--x", action=NewAction)',
    'model_kwargs["model"]["surprise"] = 1',
    'if later(): g.add_argument("--x")',
    "for name in names: pass",
    'g.add_argument("--x", **get_kwargs(Nothing)["x"])',
]


@pytest.mark.parametrize("statement", UNREAD)
def test_what_is_unknown_is_refused(read: Reader, statement: str) -> None:
    with pytest.raises(ValueError):
        read(statement)


def test_a_type_that_is_unknown_is_refused(read: Reader) -> None:
    with pytest.raises(ValueError, match="an unknown generic type: Strange"):
        read(model=MODEL + "    odd: Strange[int] = None\n")
