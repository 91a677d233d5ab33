"""Recognition of containers: by command, by image, opaque, or not at all."""

from __future__ import annotations

import shlex

import pytest

from ome.engines import Basis, Container, Detection
from ome.engines.kit import script
from ome_engine_sglang import launch
from ome_engine_sglang.detect import CONFIGURED, detect, image_version

IMAGE = "lmsysorg/sglang:v0.5.23"
SERVER = "python3 -m sglang.launch_server --port 8080"

# commands in the shell's writing; all are read
COMMANDS = [
    SERVER,
    "python -m sglang.launch_server",
    "/usr/bin/python3.11 -u -X faulthandler -W ignore -OO -m sglang.launch_server --port 1",
    "python3 -um sglang.launch_server",
    "python3 -msglang.launch_server",
    "python3 --check-hash-based-pycs never -m sglang.launch_server",
    "python3 /sgl-workspace/sglang/python/sglang/launch_server.py --port 1",
    "sglang serve",
    "sglang serve meta-llama/Llama-3 --port 1",
    "/opt/venv/bin/sglang serve --model-path $(MODEL_PATH)",
    "env A=B C=D python3 -m sglang.launch_server",
    "/usr/bin/env -i -u HOME -- A=B python3 -m sglang.launch_server",
    "exec sglang serve m",
    "tini -- python3 -m sglang.launch_server",
    "/opt/nvidia/nvidia_entrypoint.sh python3 -m sglang.launch_server",
    f"sh -c '{SERVER}'",
    f"bash -lc 'exec {SERVER}'",
    f"/bin/bash -l -c -- '{SERVER}'",
    f"bash -eo pipefail -c '{SERVER};'",
    f"bash --login -c 'A=B exec {SERVER} # the server'",
    f"tini -s -- bash --rcfile x -c '\n  exec {SERVER} \\\n    --tp-size 2\n'",
    "sh -c 'python3 -m sglang.launch_server --model-path \"$MODEL_PATH\" --tp-size=${TP:-1}'",
    "sh -c 'exec sglang serve --model-path $(MODEL_PATH) --port 1'",
    "sh -c 'sh -c \"exec sglang serve m\"'",
]

# command, why it is opaque
OPAQUE = [
    (f"sh -c 'set -e; exec {SERVER}'", script.SEVERAL),
    (f"sh -c 'sleep 1 && {SERVER}'", script.SEVERAL),
    (f"bash -c 'set -x\nexec {SERVER}'", script.SEVERAL),
    (f"sh -c '{SERVER} | tee log'", script.SEVERAL),
    (f"sh -c '{SERVER} 2>&1'", script.REDIRECTED),
    ("sh -c 'python3 -m sglang.launch_server --tp $(nvidia-smi -L | wc -l)'", script.SUBSTITUTED),
    ("sh -c 'python3 -m sglang.launch_server --tp \"`nproc`\"'", script.SUBSTITUTED),
    ("sh -c 'python3 -m sglang.launch_server $FLAGS'", launch.COMPUTED),
    ("sh -c 'python3 -m sglang.launch_server --trust-remote-code $FLAGS'", launch.COMPUTED),
    ("sh -c 'python3 -m sglang.launch_server \"$@\"' x --port 1", launch.COMPUTED),
    (f"numactl -N 0 {SERVER}", launch.WRAPPED.format(program="numactl")),
    ("uv run sglang serve m", launch.WRAPPED.format(program="uv")),
    (f"sh -c 'exec numactl -N 0 {SERVER}'", launch.WRAPPED.format(program="numactl")),
    (f"{SERVER} --config a.yaml", CONFIGURED),
    (f"{SERVER} --config=a.yaml", CONFIGURED),
]

OTHERS = [
    "sleep infinity",
    "bash",
    "sh -c 'sleep infinity'",
    "sh -c",
    "sh script.sh",
    "env",
    "sglang",
    "sglang generate --model-path m",
    "python3",
    "python3 -X",
    "python3 -c 'import sglang.launch_server'",
    "python3 -m sglang.bench_serving",
    "python3 -m",
    "python3 -m sglang.launch_server_http",
    "python3 -m sglang_router.launch_router --pd-disaggregation",
    "python3 -m sglang_router.launch_server",
    "sglang-router launch",
    "sh -c 'python3 -m sglang_router.launch_router --policy random'",
    "sh -c 'echo use sglang.launch_server'",
    "sh -c 'echo \"python3 -m sglang.launch_server\"'",
    "python3 -m my_sglang.launch_server",
    "my-sglang serve",
    "sh -c 'my-sglang serve'",
    "vllm serve m",
]


def container(command: str, image: str = IMAGE, *, as_args: bool = False) -> Container:
    words = tuple(shlex.split(command))
    return Container(image, args=words) if as_args else Container(image, command=words)


@pytest.mark.parametrize("as_args", [False, True])
@pytest.mark.parametrize("command", COMMANDS)
def test_recognised_by_command(command: str, as_args: bool) -> None:
    expected = Detection(Basis.COMMAND, "0.5.23")
    assert detect(container(command, as_args=as_args)) == expected
    assert detect(container(command, "my-sglang-proxy")) == Detection(Basis.COMMAND)


@pytest.mark.parametrize("command, reason", OPAQUE)
def test_recognised_and_opaque(command: str, reason: str) -> None:
    assert detect(container(command)) == Detection(Basis.COMMAND, "0.5.23", reason)


@pytest.mark.parametrize("as_args", [False, True])
@pytest.mark.parametrize("command", OTHERS)
def test_not_recognised(command: str, as_args: bool) -> None:
    assert detect(container(command, as_args=as_args)) is None


def test_command_and_args_are_one_vector() -> None:
    split = Container("x", ("bash", "-c"), (f"exec {SERVER}",))
    assert detect(split) == Detection(Basis.COMMAND)


# image, whether it is SGLang's server, its version
IMAGES = [
    ("lmsysorg/sglang", True, ""),
    ("sglang", True, ""),
    ("lmsysorg/sglang:latest", True, ""),
    ("lmsysorg/sglang:dev", True, ""),
    ("lmsysorg/sglang:nightly-dev-20251215-4449c170", True, ""),
    ("lmsysorg/sglang@sha256:0123", True, ""),
    ("docker.io/lmsysorg/sglang:v0.5.5.post3-cu129-amd64", True, "0.5.5.post3"),
    ("registry.example:5000/a/b/sglang:v0.5.20@sha256:0123", True, "0.5.20"),
    ("registry.example:5000/sglang", True, ""),
    ("lmsysorg/sglang:0.5.6-diffusion-cuda129-amd64", True, "0.5.6"),
    ("lmsysorg/sglang:v0.5.10rc0-runtime", True, "0.5.10rc0"),
    ("lmsysorg/sglang:v0.5.20_patched", True, "0.5.20"),
    ("lmsysorg/sglang:v0.5", True, ""),
    ("lmsysorg/sglang:v0.5.20.1", True, ""),
    ("lmsysorg/sglang:cuda-12.9.1", True, ""),
    ("nvcr.io/nvidia/sglang:25.10-py3", True, ""),
    ("rocm/sglang-rocm:v0.5.20", True, "0.5.20"),
    ("lmsysorg/sgl-model-gateway:v0.3.2", False, ""),
    ("lmsysorg/sglang-router:v0.3.2", False, ""),
    ("nvcr.io/nvidia/ai-dynamo/sglang-runtime:0.7.0", False, ""),
    ("my-sglang-proxy:v0.5.20", False, ""),
    ("mysglang:v0.5.20", False, ""),
    ("sglang/other:v0.5.20", False, ""),
    ("", False, ""),
]


@pytest.mark.parametrize("image, is_sglang, version", IMAGES)
def test_image(image: str, is_sglang: bool, version: str) -> None:
    expected = Detection(Basis.IMAGE, version) if is_sglang else None
    assert detect(Container(image)) == expected
    assert detect(Container(image, args=("--tp-size", "2"))) == expected
    assert image_version(image) == version


def test_flags_in_a_file_with_image_alone() -> None:
    assert detect(Container("sglang", args=("--config=a.yaml",))) == Detection(
        Basis.IMAGE, "", CONFIGURED
    )


ODD = [
    ("",),
    ("", ""),
    ("-",),
    ("--",),
    ("sh", "-c", ""),
    ("sh", "-c", "'"),
    ("bash", "-o"),
    ("env", "-u"),
    ("python3", "-m", "сервер"),
    ("sh", "-c", "python3 -m sglang.launch_server --served-model-name 模型 \ud800"),
    ("sh", "-c", "python3 -m sglang.launch_server '"),
    ("sh", "-c", "python3 -m sglang.launch_server \\"),
    ("\x00", "\n"),
]


@pytest.mark.parametrize("words", ODD)
def test_odd_input_raises_nothing(words: tuple[str, ...]) -> None:
    detect(Container("sglang", words))
    detect(Container("sglang", args=words))
    detect(Container(words[0]))


# Quadratic work on these would take hours, so that each test ends is what it shows about time.
BIG = 1 << 20
LARGE = [
    (("x" * BIG,), None),
    (("-" * BIG,), None),
    (("python3", "-m", "x" * BIG), None),
    (("python3", "-m", "sglang.launch_server", "--chat-template", "/" * BIG), ""),
    (("sh", "-c", "-m" * (BIG // 2)), None),
    (("sh", "-c", "-m " * (BIG // 3)), None),
    (("sh", "-c", "-" + "m" * BIG), None),
    (("sh", "-c", "-m" + " " * BIG), None),
    (("sh", "-c", "sglang " * (BIG // 7)), None),
    (("sh", "-c", "sglang" + " " * BIG + "serve"), None),
    (("sh", "-c", "'" * BIG), None),
    (
        ("sh", "-c", "python3 -m sglang.launch_server " + "a " * (BIG // 2)),
        "its shell script is too long",
    ),
    (("sh", "-c", "python3 -m sglang.launch_server " + "a " * (script.LONGEST // 2 - 32)), ""),
    (("sh", "-c", "python3 -m sglang.launch_server " + '"a' * (script.LONGEST // 2 - 32)), ""),
]


@pytest.mark.parametrize(("words", "opaque"), LARGE, ids=range(len(LARGE)))
def test_large_input(words: tuple[str, ...], opaque: str | None) -> None:
    found = detect(Container("sglang", words))
    assert (found and found.opaque) == opaque


def test_large_image() -> None:
    found = detect(Container("sglang:" + "0." * (BIG // 2)))
    assert found is not None
    assert found.version == ""
