"""Recognition of containers: by command, by image, opaque, or not at all."""

from __future__ import annotations

import shlex

import pytest

from ome.engines import Basis, Container, Detection
from ome.engines.kit import COMPUTED, WRAPPED, read_launch, script
from ome_engine_vllm.detect import CLUSTER_NODE, detect
from ome_engine_vllm.launch import SERVER

IMAGE = "vllm/vllm-openai:v0.33.0"
SERVE = "vllm serve m --port 8080"

# commands in the shell's writing; all are read
COMMANDS = [
    SERVE,
    "vllm serve",
    "/opt/venv/bin/vllm serve $(MODEL_PATH) -tp 8",
    "python3 -m vllm.entrypoints.openai.api_server --model m",
    "python3 -u -m vllm.entrypoints.launchers.api_server.entry --model m",
    "python -m vllm.entrypoints.grpc_server --model m",
    "python3 /app/vllm/entrypoints/openai/api_server.py --model m",
    "env VLLM_USE_V1=1 vllm serve m",
    "tini -- vllm serve m",
    f"sh -c 'exec {SERVE}'",
    "bash -c 'vllm serve \"$MODEL_PATH\" --tensor-parallel-size $TP'",
]

# command, why it is opaque
OPAQUE = [
    (f"sh -c 'ray start --head && {SERVE}'", script.SEVERAL),
    (f"bash -c 'ray start --head --port=6379; {SERVE}'", script.SEVERAL),
    ("sh -c 'vllm serve m --tensor-parallel-size $(nvidia-smi -L | wc -l)'", script.SUBSTITUTED),
    ("sh -c 'vllm serve m $EXTRA_ARGS'", COMPUTED),
    (f"uv run {SERVE}", WRAPPED.format(program="uv")),
    (f"{SERVE} --config a.yaml", "some of its flags stand in a file (--config)"),
    (f"{SERVE} --config=a.yaml", "some of its flags stand in a file (--config)"),
]

OTHERS = [
    "sleep infinity",
    "vllm",
    "vllm bench serve",
    "vllm chat",
    "vllm-router --policy round_robin",
    "my-vllm serve m",
    "python3 -m vllm",
    "python3 -m vllm.entrypoints.openai.run_batch -i a",
    "python3 -m sglang.launch_server",
    "sglang serve m",
    "ray status",
    "sh -c 'echo vllm serves'",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_command(command: str) -> None:
    words = tuple(shlex.split(command))
    expected = Detection(Basis.COMMAND, "0.33.0")
    assert detect(Container(IMAGE, words)) == expected
    assert detect(Container(IMAGE, args=words)) == expected
    assert detect(Container("acme/server:1", words)) == Detection(Basis.COMMAND)


@pytest.mark.parametrize("command, reason", OPAQUE)
def test_opaque(command: str, reason: str) -> None:
    found = detect(Container(IMAGE, tuple(shlex.split(command))))
    assert found == Detection(Basis.COMMAND, "0.33.0", reason)


@pytest.mark.parametrize("command", OTHERS)
def test_not_recognised(command: str) -> None:
    assert detect(Container(IMAGE, tuple(shlex.split(command)))) is None


@pytest.mark.parametrize(
    "command", ["ray start --address=$(LEADER):6379 --block", "sh -c 'ray start --head --block'"]
)
def test_a_ray_node_is_vllms_in_its_image_only(command: str) -> None:
    words = tuple(shlex.split(command))
    assert detect(Container(IMAGE, words)) == Detection(Basis.IMAGE, "0.33.0", CLUSTER_NODE)
    assert detect(Container("llm-d/llm-d-cuda:v0.9.0", words)) == Detection(
        Basis.IMAGE, "", CLUSTER_NODE
    )
    assert detect(Container("rayproject/ray:2.50.0", words)) is None


# image, its arguments, the version; None for an image that isn't vLLM's or runs something else
IMAGES: list[tuple[str, str, str | None]] = [
    ("vllm/vllm-openai", "", ""),
    ("vllm/vllm-openai:latest", "", ""),
    ("vllm/vllm-openai:nightly", "--port 1", ""),
    ("vllm/vllm-openai@sha256:0123", "", ""),
    ("docker.io/vllm/vllm-openai:v0.9.0.1", "--model m", "0.9.0.1"),
    ("vllm/vllm-openai:v0.20.1-cu129", "", "0.20.1"),
    ("vllm/vllm-openai:v0.8.5.post1", "", "0.8.5.post1"),
    ("vllm/vllm-openai:v0.31.0-ubuntu2404", "meta-llama/Llama-3 -tp 8", "0.31.0"),
    ("registry.example:5000/a/vllm-openai-rocm:v0.30.0rc1", "", "0.30.0rc1"),
    ("vllm/vllm-openai:v0.7.3.78f0810ef", "", ""),
    ("llm-d/llm-d-cuda:v0.7.0", "--port 1", ""),
    ("llm-d/llm-d-cuda:v0.7.0", "sleep 1", None),
    ("rocm/vllm:latest", "", ""),
    ("rocm/vllm:latest", "bash", None),
    ("vllm/vllm-router:v0.1.17", "", None),
    ("acme/official-vllm-openai:v0.9.0", "", None),
    ("lmsysorg/sglang:v0.5.23", "", None),
    ("", "", None),
]


@pytest.mark.parametrize("image, args, version", IMAGES)
def test_image(image: str, args: str, version: str | None) -> None:
    expected = None if version is None else Detection(Basis.IMAGE, version)
    assert detect(Container(image, args=tuple(args.split()))) == expected


def test_arguments_of_a_launch() -> None:
    found = read_launch(SERVER, ["sh", "-c", "exec vllm serve m -tp 8"])
    assert found is not None
    assert (found.arguments, found.start, found.script) == (("m", "-tp", "8"), 2, True)
    assert (found.is_serve, found.program) == (True, "vllm serve")


@pytest.mark.parametrize(
    "words", [("",), ("sh", "-c", "'"), ("python3", "-m"), ("ray",), ("\ud800",)]
)
def test_odd_input_raises_nothing(words: tuple[str, ...]) -> None:
    detect(Container("vllm-openai", words))
    detect(Container("vllm-openai", args=words))
    detect(Container(words[0]))
