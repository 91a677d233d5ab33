"""Recognising SGLang in a container: by its command, or else by its image."""

from __future__ import annotations

from typing import Final

from ome.engines import Container, Detection, kit
from ome_engine_sglang.launch import SERVER

__all__ = ["CONFIGURED", "detect", "image_version"]

CONFIGURED: Final = SERVER.configured


def detect(container: Container) -> Detection | None:
    """SGLang's server in a container, or None.

    A launch that can't be read (a script of several commands, say) is recognised, and opaque.
    """
    return kit.detect(SERVER, container)


def image_version(image: str) -> str:
    """The version in the tag of an image of SGLang; "" for another image, a digest or a moving tag."""
    return kit.image_version(SERVER, image)
