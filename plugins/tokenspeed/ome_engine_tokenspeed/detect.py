"""Recognising TokenSpeed in a container: by its command, or else by its image."""

from __future__ import annotations

from ome.engines import Container, Detection, kit
from ome_engine_tokenspeed.launch import SERVER

__all__ = ["detect"]


def detect(container: Container) -> Detection | None:
    """TokenSpeed's server in a container, or None.

    A launch that can't be read (a script of several commands, say) is recognised, and opaque.
    """
    return kit.detect(SERVER, container)
