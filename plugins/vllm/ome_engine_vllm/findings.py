"""What fails or hurts later in a pod that runs vLLM: the rules in their order."""

from __future__ import annotations

from typing import Final

from ome.engines import Finding, PodView, kit
from ome.engines.kit import CommandLine, Rule
from ome_engine_vllm import pods, serving
from ome_engine_vllm.detect import CLUSTER_NODE
from ome_engine_vllm.launch import SERVER

__all__ = ["RULES", "find"]


def find(view: PodView) -> list[Finding]:
    """Everything that the rules find in a pod, in their order. Changes nothing."""
    if view.detection.opaque == CLUSTER_NODE:
        return list(pods.find_probed_node(view))
    line = kit.read_command_line(SERVER, view)
    return [finding for rule in RULES for finding in rule(view, line)]


def _sizes(line: CommandLine) -> list[tuple[str, int]] | None:
    """The factors of the accelerators that are needed; other executors spread the server."""
    executor = line.value("--distributed-executor-backend")
    if executor not in ("", "mp", "uni") or line.value("--data-parallel-backend") == "ray":
        return None
    names = (
        "--tensor-parallel-size",
        "--pipeline-parallel-size",
        "--prefill-context-parallel-size",
    )
    tensor, pipeline, context = (line.number(name, 1) for name in names)
    data = _replicas_here(line)
    if tensor is None or pipeline is None or context is None or data is None:
        return None
    factors = [("tensor", tensor), ("pipeline", pipeline), ("context", context), ("data", data)]
    return [factor for factor in factors if factor[0] != "context" or factor[1] != 1]


def _replicas_here(line: CommandLine) -> int | None:
    """The data-parallel replicas that this server starts on its nodes."""
    if line.has("--data-parallel-rank") or line.has("--data-parallel-external-lb"):
        return 1
    local = line.last("--data-parallel-size-local")
    if local is not None:
        has_nodes = line.number("--nnodes", 1) != 1
        return None if has_nodes else line.number("--data-parallel-size-local", 1)
    if line.has("--data-parallel-hybrid-lb") or line.has("--data-parallel-start-rank"):
        return None
    return line.number("--data-parallel-size", 1)


RULES: Final[tuple[Rule, ...]] = (
    kit.opaque("VLLMOpaque"),
    kit.unversioned("VLLMVersionUnknown"),
    serving.find_deprecated_launch,
    serving.find_model,
    pods.find_ports,
    pods.find_headless_probe,
    kit.shared_memory(
        "VLLMNoSharedMemory", "--tensor-parallel-size", "vllm-project/production-stack#276"
    ),
    kit.accelerators(
        "VLLMTooFewAccelerators",
        _sizes,
        ("--tensor-parallel-size", "--pipeline-parallel-size", "--data-parallel-size"),
        reference="vllm-project/vllm#8908",
    ),
    pods.find_port_variable,
    pods.find_shutdown,
    kit.served_name("VLLMServedName", "--served-model-name"),
    kit.ambiguous("VLLMFlagAmbiguous"),
    kit.prefixes("VLLMFlagPrefix"),
    kit.misspelt("VLLMFlagSpelling"),
    kit.unknown("VLLMFlagRemoved", "VLLMFlagUnknown"),
    kit.deprecated("VLLMFlagDeprecated"),
    kit.repeated("VLLMFlagRepeated"),
    kit.exclusive("VLLMFlagExclusive"),
)
