"""Recognising SGLang in a container: by its command, or else by its image."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ome.engines import Basis, Container, Detection
from ome_engine_sglang.launch import read_launch

__all__ = ["CONFIGURED", "detect", "image_version"]

# The image's name as SGLang and the hardware vendors give it. Others that start so (`sglang-router`,
# Dynamo's `sglang-runtime`) hold something else.
_NAME: Final = re.compile(r"sglang(?:-(?:ascend|cpu|cuda|musa|npu|rocm|xpu))?")
_VERSION: Final = re.compile(r"v?(\d+\.\d+\.\d+(?:\.post\d+|rc\d+)?)(?=[-_+]|$)")

CONFIGURED: Final = "some of its flags stand in a file (--config)"


def detect(container: Container) -> Detection | None:
    """SGLang's server in a container, or None.

    A launch that can't be read (a script of several commands, say) is recognised, and opaque.
    """
    version = image_version(container.image)
    launch = read_launch(container.argv)
    if launch is not None:
        opaque = launch.opaque or _configured(launch.arguments)
        return Detection(Basis.COMMAND, version, opaque)
    if container.command or _tag_of(container.image) is None:
        return None
    if container.args and not container.args[0].startswith("-"):
        return None
    return Detection(Basis.IMAGE, version, _configured(container.args))


def image_version(image: str) -> str:
    """The version in the tag of an image of SGLang; "" for another image, a digest or a moving tag."""
    tag = _tag_of(image)
    found = _VERSION.match(tag) if tag else None
    return found[1] if found else ""


def _tag_of(image: str) -> str | None:
    """The tag ("" when there is none) of an image of SGLang, None for another image."""
    name, _, tag = image.partition("@")[0].rpartition("/")[2].partition(":")
    return tag if _NAME.fullmatch(name) else None


def _configured(arguments: Sequence[str]) -> str:
    is_so = any(word == "--config" or word.startswith("--config=") for word in arguments)
    return CONFIGURED if is_so else ""
