"""Recognising vLLM in a container: by its command, or else by its image."""

from __future__ import annotations

from typing import Final

from ome.engines import Basis, Container, Detection, kit
from ome_engine_vllm.launch import RAY, SERVER

__all__ = ["CLUSTER_NODE", "detect"]

CLUSTER_NODE: Final = "it starts a node of a Ray cluster, whose flags aren't the server's"


def detect(container: Container) -> Detection | None:
    """vLLM's server in a container, or a Ray node in an image of vLLM; None for anything else.

    A launch that can't be read (a script of several commands, say) is recognised, and opaque.
    """
    found = kit.detect(SERVER, container)
    if found is not None and found.basis is Basis.COMMAND:
        return found
    if kit.read_launch(RAY, container.argv) is None:
        return found
    by_image = kit.detect(SERVER, Container(container.image))
    if by_image is None:
        return None
    return Detection(Basis.IMAGE, by_image.version, CLUSTER_NODE)
