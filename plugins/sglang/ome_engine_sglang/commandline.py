"""What a container's command line says to SGLang, for the rules to ask."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ome.engines import PodView, kit
from ome.engines.kit import CommandLine
from ome_engine_sglang.launch import SERVER

__all__ = ["read_command_line"]

_DIFFUSION_ONLY: Final = frozenset({"--num-gpus", "--pipeline-class-name", "--ulysses-degree"})


def read_command_line(view: PodView) -> CommandLine:
    """The command line of the container in view.

    The diffusion server of `sglang serve` has a parser and defaults of its own.
    """
    line = kit.read_command_line(SERVER, view)
    return replace(line, is_tabled=not _is_diffusion(line, str(view.container.get("image") or "")))


def _is_diffusion(line: CommandLine, image: str) -> bool:
    if not line.launch.is_serve:
        return False
    declared = [flag.values[0] for flag in line.flags if flag.key == "--model-type" and flag.values]
    if declared and declared[-1] != "auto":
        return declared[-1] != "llm"
    return "diffusion" in image or any(flag.key in _DIFFUSION_ONLY for flag in line.flags)
