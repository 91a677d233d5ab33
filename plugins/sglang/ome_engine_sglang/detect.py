"""Recognising SGLang in a container: by its command, or else by its image."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Final

from ome.engines import Basis, Container, Detection

__all__ = ["detect", "image_version", "launch_arguments"]

_MODULE: Final = "sglang.launch_server"
_SHELLS: Final = frozenset({"sh", "bash", "ash", "dash"})
_IMAGE: Final = re.compile(r"(?:^|/)sglang(?:-[a-z0-9]+)*(?=[:@]|$)")
_TAG_VERSION: Final = re.compile(r"v?(\d+\.\d+\.\d+(?:\.post\d+)?)(?![\d.])")
_SCRIPT: Final = re.compile(r"sglang\.launch_server|\bsglang\s+serve\b")
_OTHER_IMAGES: Final = ("sglang-router", "sglang-gateway")


def detect(container: Container) -> Detection | None:
    """SGLang's server in a container, or None.

    A launch inside a shell script is recognised, and opaque: its flags can't be read.
    """
    version = image_version(container.image)
    argv = container.argv
    script = _shell_script(argv)
    if script is not None:
        if not _SCRIPT.search(script):
            return None
        words = _words(script)
        if words is not None and launch_arguments(words) is not None:
            return Detection(Basis.COMMAND, version)
        return Detection(Basis.COMMAND, version, opaque="it is launched by a shell script")
    if launch_arguments(argv) is not None:
        return Detection(Basis.COMMAND, version)
    name = _IMAGE.search(container.image)
    if name and not name.group().lstrip("/").startswith(_OTHER_IMAGES) and not container.command:
        return Detection(Basis.IMAGE, version)
    return None


def image_version(image: str) -> str:
    """The SGLang version in an image's tag, or ""."""
    tag = image.rpartition("@")[0] or image
    found = _TAG_VERSION.search(tag.rpartition("/")[2].partition(":")[2])
    return found[1] if found else ""


def launch_arguments(argv: Sequence[str]) -> Sequence[str] | None:
    """The words after SGLang's own command, or None when that isn't what runs."""
    words = list(argv)
    while words and (words[0] in ("exec", "env") or re.fullmatch(r"[A-Za-z_]\w*=.*", words[0])):
        del words[0]
    if len(words) >= 2 and words[0].rpartition("/")[2] == "sglang" and words[1] == "serve":
        return words[2:]
    if words and re.fullmatch(r"(?:.*/)?python[\d.]*", words[0]):
        for at, word in enumerate(words[1:], 1):
            if word == "-m" and words[at + 1 : at + 2] == [_MODULE]:
                return words[at + 2 :]
            if not word.startswith("-"):
                return None
    return None


def _shell_script(argv: Sequence[str]) -> str | None:
    """The script of `sh -c SCRIPT`, or None."""
    if len(argv) >= 3 and argv[0].rpartition("/")[2] in _SHELLS:
        for at, word in enumerate(argv[1:-1], 1):
            if word.startswith("-") and "c" in word:
                return argv[at + 1]
    return None


def _words(script: str) -> list[str] | None:
    """The words of a script that is one plain command, or None."""
    if re.search(r"[;&|<>`]|\$\((?![A-Z_]+\))|\n\s*\S.*\n", script.replace("\\\n", " ")):
        return None
    try:
        return shlex.split(script.replace("\\\n", " "))
    except ValueError:
        return None
