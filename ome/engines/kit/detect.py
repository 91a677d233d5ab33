"""Recognising an engine in a container: by its command, or else by its image."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ome.engines.kit.launch import read_launch
from ome.engines.kit.server import Server
from ome.engines.types import Basis, Container, Detection

__all__ = ["detect", "image_version"]


def detect(server: Server, container: Container) -> Detection | None:
    """The server in a container, or None.

    A launch that can't be read (a script of several commands, say) is recognised, and opaque. The
    version is the image's, or else the annotation's.
    """
    version = image_version(server, container.image) or container.version
    launch = read_launch(server, container.argv)
    if launch is not None:
        opaque = launch.opaque or _configured(server, launch.arguments)
        return Detection(Basis.COMMAND, version, opaque)
    name, _ = _parts(container.image)
    runs = re.fullmatch(server.image, name) is not None
    if container.command or not (runs or re.fullmatch(server.other_image, name)):
        return None
    is_plain = bool(container.args) and not container.args[0].startswith("-")
    if is_plain and not (runs and server.image_runs):
        return None
    return Detection(Basis.IMAGE, version, _configured(server, container.args))


def image_version(server: Server, image: str) -> str:
    """The version in the tag of the engine's image; "" for another image, a digest or a moving tag."""
    name, tag = _parts(image)
    found = re.match(server.tag, tag) if re.fullmatch(server.image, name) else None
    return found[1] if found else ""


def _parts(image: str) -> tuple[str, str]:
    """The name of an image without its path, and its tag."""
    name, _, tag = image.partition("@")[0].rpartition("/")[2].partition(":")
    return name, tag


def _configured(server: Server, arguments: Sequence[str]) -> str:
    flag = server.config
    is_so = flag and any(word == flag or word.startswith(flag + "=") for word in arguments)
    return server.configured if is_so else ""
