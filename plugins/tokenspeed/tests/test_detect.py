"""What is TokenSpeed, what isn't, and what can't be read."""

from __future__ import annotations

import shlex

import pytest

from ome.engines import Basis, Container, Detection
from ome.engines.kit import COMPUTED, WRAPPED
from ome_engine_tokenspeed.detect import detect

COMMANDS: list[tuple[str, str]] = [
    ("tokenspeed serve m", ""),
    ("/opt/venv/bin/ts serve m --tp 8", ""),
    ("python3 -m smg_grpc_servicer.tokenspeed --model m", ""),
    ("env A=1 tini -- ts serve m", ""),
    ("sh -c 'exec ts serve $(MODEL_PATH) --tp=8'", ""),
    ("bash -c 'ts serve m $EXTRA'", COMPUTED),
    ("numactl ts serve m", WRAPPED.format(program="numactl")),
    ("ts serve m --config=a.yaml", ""),  # it has no such flag
]


@pytest.mark.parametrize(("command", "opaque"), COMMANDS)
def test_commands(command: str, opaque: str) -> None:
    found = detect(Container("lightseekorg/tokenspeed:0.1.1", tuple(shlex.split(command))))
    assert found == Detection(Basis.COMMAND, "0.1.1", opaque)


OTHERS = [
    "ts version",
    "tokenspeed env",
    "ts merge-traces a b",
    "python3 -m smg_grpc_servicer.sglang",
    "python3 -m smg launch",
    "smg serve --backend tokenspeed",
    "sh -c 'echo tokenspeed'",
]


@pytest.mark.parametrize("command", OTHERS)
def test_something_else_runs(command: str) -> None:
    assert detect(Container("lightseekorg/tokenspeed:0.1.1", tuple(shlex.split(command)))) is None


IMAGES: list[tuple[str, str | None]] = [
    ("docker.io/lightseekorg/tokenspeed:0.1.1", "0.1.1"),
    ("lightseekorg/tokenspeed-amd:v0.1.0", "0.1.0"),
    ("lightseekorg/tokenspeed:latest", ""),
    ("lightseekorg/tokenspeed@sha256:0123", ""),
    ("lightseekorg/smg:1.13.0", None),
    ("lightseekorg/tokenspeed-kernel:0.1.0", None),
]


@pytest.mark.parametrize(("image", "version"), IMAGES)
def test_images(image: str, version: str | None) -> None:
    found = detect(Container(image))
    assert found == (None if version is None else Detection(Basis.IMAGE, version))
