"""What fails or hurts later in a pod that runs TokenSpeed: the rules in their order."""

from __future__ import annotations

from typing import Final

from ome.engines import Finding, PodView, kit
from ome.engines.kit import Rule
from ome_engine_tokenspeed import arguments, pods
from ome_engine_tokenspeed.launch import SERVER
from ome_engine_tokenspeed.sizes import factors

__all__ = ["RULES", "find"]


def find(view: PodView) -> list[Finding]:
    """Everything that the rules find in a pod, in their order. Changes nothing."""
    line = kit.read_command_line(SERVER, view)
    return [finding for rule in RULES for finding in rule(view, line)]


RULES: Final[tuple[Rule, ...]] = (
    kit.opaque("TokenSpeedOpaque"),
    kit.unversioned("TokenSpeedVersionUnknown"),
    pods.find_loopback,
    pods.find_probe_port,
    pods.find_worker_probe,
    pods.find_metrics,
    pods.find_drain,
    kit.shared_memory(
        "TokenSpeedNoSharedMemory",
        "--tensor-parallel-size",
        "vllm-project/production-stack#276",
    ),
    kit.shared_memory(
        "TokenSpeedNoSharedMemory", "--attn-tp-size", "vllm-project/production-stack#276"
    ),
    kit.accelerators(
        "TokenSpeedTooFewAccelerators",
        factors,
        ("--world-size", "--tensor-parallel-size", "--attn-tp-size", "--data-parallel-size"),
        reference="vllm-project/vllm#8908",
    ),
    arguments.find_role,
    arguments.find_address,
    arguments.find_encoder,
    arguments.find_words,
    kit.served_name("TokenSpeedServedName", "--served-model-name"),
    arguments.late(kit.misspelt("TokenSpeedFlagSpelling")),
    arguments.late(kit.unknown("TokenSpeedFlagRemoved", "TokenSpeedFlagUnknown")),
    kit.repeated("TokenSpeedFlagRepeated"),
    kit.exclusive("TokenSpeedFlagExclusive"),
)
