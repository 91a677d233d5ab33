"""How the kit reads sizes, shares and types of an engine that nobody has."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ome.engines import Basis, Detection, Geometry, PodView, kit
from ome.engines.kit import CommandLine, Server

FLAGS = """{"versions": ["1.0.0"], "options": [
  ["--tensor-size", "one", "0"],
  ["--memory", "one", "0"],
  ["--quantization", "one", "0"],
  ["--kv-cache-dtype", "one", "0"],
  ["--config", "one", "0"]
]}"""
ACME = Server(name="Acme", table=kit.read_table(FLAGS), commands=(("acme", "serve"),), image="acme")


def line_of(*args: str, basis: Basis = Basis.COMMAND, script: str = "") -> CommandLine:
    command = ["sh", "-c", script] if script else ["acme", "serve"]
    container = {"image": "acme:1.0.0", "command": command, "args": list(args)}
    view = PodView("engine", container, {}, 1, Detection(basis, "1.0.0"))
    return kit.read_command_line(ACME, view)


SIZES: list[tuple[str, int | None]] = [
    ("--tensor-size=8", 8),
    ("--tensor-size=0", None),
    ("--tensor-size=-1", None),
    ("--tensor-size=eight", None),
    ("--tensor-size=$(N)", None),
    ("--memory=1", 1),
    ("--config=a.yaml", None),
]


@pytest.mark.parametrize(("flag", "expected"), SIZES)
def test_size(flag: str, expected: int | None) -> None:
    assert kit.size(line_of(flag), "--tensor-size") == expected


FRACTIONS: list[tuple[str, float | None]] = [
    ("--memory=0.85", 0.85),
    ("--memory=1", 1.0),
    ("--memory=0", None),
    ("--memory=1.01", None),
    ("--memory=nan", None),
    ("--memory=$(M)", None),
    ("--tensor-size=1", None),
]


@pytest.mark.parametrize(("flag", "expected"), FRACTIONS)
def test_fraction(flag: str, expected: float | None) -> None:
    assert kit.fraction(line_of(flag), "--memory") == expected


CACHES: list[tuple[str, float | None]] = [
    ("--memory=1", 2),
    ("--kv-cache-dtype=auto", 2),
    ("--kv-cache-dtype=bf16", 2),
    ("--kv-cache-dtype=fp8_e5m2", 1),
    ("--kv-cache-dtype=fp4", None),
    ("--kv-cache-dtype=$(TYPE)", None),
    ("--config=a.yaml", None),
]


@pytest.mark.parametrize(("flag", "expected"), CACHES)
def test_cache_bytes(flag: str, expected: float | None) -> None:
    assert kit.cache_bytes(line_of(flag)) == expected


@given(st.lists(st.integers(1, 64) | st.none(), max_size=5))
def test_product(sizes: list[int | None]) -> None:
    known = [each for each in sizes if each is not None]
    expected = math.prod(known) if len(known) == len(sizes) else None
    assert kit.product(*sizes) == expected


QUANTIZATIONS: list[tuple[CommandLine, str | None]] = [
    (line_of(), ""),
    (line_of("--quantization=fp8"), "fp8"),
    (line_of("--quantization=$(Q)"), None),
    (line_of("--config=a.yaml"), None),
    (line_of("--config=a.yaml", "--quantization=fp8"), "fp8"),
    (line_of(basis=Basis.IMAGE), None),
]


@pytest.mark.parametrize(("line", "expected"), QUANTIZATIONS)
def test_spread(line: CommandLine, expected: str | None) -> None:
    found = kit.spread(line, shards=8, attention=4, pipeline=2, memory=0.9, kv_bytes=1)
    assert found == Geometry(8, 4, 2, 0.9, expected, 1)


def test_nothing_is_said_of_what_isnt_read() -> None:
    line = line_of(script="a; acme serve m")
    assert kit.spread(line, shards=1, attention=1, pipeline=1, memory=1, kv_bytes=2) is None
