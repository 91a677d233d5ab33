"""What fails or hurts later in a pod that runs SGLang: the rules in their order."""

from __future__ import annotations

from typing import Final

from ome.engines import Finding, PodView, kit
from ome.engines.kit import CommandLine, Rule
from ome_engine_sglang.commandline import read_command_line
from ome_engine_sglang.probes import (
    DEFAULT_PORT,
    find_grace,
    find_timeouts,
    find_worker_probe,
    other_ports,
)

__all__ = ["RULES", "find"]


def find(view: PodView) -> list[Finding]:
    """Everything that the rules find in a pod, in their order. Changes nothing."""
    line = read_command_line(view)
    return [finding for rule in RULES for finding in rule(view, line)]


def _sizes(line: CommandLine) -> list[tuple[str, int]] | None:
    """The factors of the accelerators that are needed; Ray spreads the server by itself."""
    tensor, pipeline, data = (line.number(f"--{one}-size", 1) for one in ("tp", "pp", "dp"))
    if tensor is None or pipeline is None or data is None or line.has("--use-ray"):
        return None
    if line.has("--enable-dp-attention"):  # attention's data parallelism lies inside the tensor's
        data = 1
    return [("tensor", tensor), ("pipeline", pipeline), ("data", data)]


RULES: Final[tuple[Rule, ...]] = (
    kit.opaque("SGLangOpaque"),
    kit.unversioned("SGLangVersionUnknown"),
    kit.loopback("SGLangLoopback", "127.0.0.1", reference="ai-dynamo/modelexpress#397"),
    kit.probe_ports("SGLangProbePort", DEFAULT_PORT, other_ports),
    find_timeouts,
    find_worker_probe,
    find_grace,
    kit.shared_memory("SGLangNoSharedMemory", "--tp-size", "vllm-project/production-stack#276"),
    kit.accelerators(
        "SGLangTooFewAccelerators",
        _sizes,
        ("--tp-size", "--pp-size", "--dp-size"),
        reference="sgl-project/sglang#3470",
    ),
    kit.served_name("SGLangServedName", "--served-model-name"),
    kit.ambiguous("SGLangFlagAmbiguous", {"--pp": "sgl-project/sglang#11279"}),
    kit.prefixes("SGLangFlagPrefix"),
    kit.misspelt("SGLangFlagSpelling"),
    kit.unknown("SGLangFlagRemoved", "SGLangFlagUnknown"),
    kit.repeated("SGLangFlagRepeated"),
)
