"""The declarative description of an engine's server: its name, its flags, its launches, its images."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from ome.engines.kit.flags import FlagTable

__all__ = ["CONFIGURED", "Server"]

CONFIGURED: Final = "some of its flags stand in a file ({flag})"


@dataclass(frozen=True, eq=False)
class Server:
    """How an engine's server is told from other programs, and how its flags are read.

    `name` is for people. `modules` are what `python -m` runs, by name or by file, `commands` the
    console commands: with its subcommand, one takes the model as its first plain word; alone, like
    `("llama-server",)`, it takes flags only.
    `image` matches the whole name (the last part of the path, no tag) of images whose tag is the
    engine's version, as `tag` finds it, `other_image` of images with a numbering of their own.
    `image_runs` says that the former start the server by themselves, so that their arguments may
    begin with the model.
    `config` is the flag that names a file with more flags, "" when there is none.
    """

    name: str
    table: FlagTable
    modules: tuple[str, ...] = ()
    commands: tuple[tuple[str] | tuple[str, str], ...] = ()
    image: str = r"(?!)"
    tag: str = r"v?(\d+\.\d+\.\d+(?:\.post\d+|rc\d+)?)(?=[-_+]|$)"
    other_image: str = r"(?!)"
    image_runs: bool = False
    config: str = "--config"
    mentioned: re.Pattern[str] = field(init=False, repr=False, compare=False)
    """Matches text that launches the server somewhere."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "mentioned", _mentioned(self.modules, self.commands))

    @property
    def files(self) -> tuple[str, ...]:
        """The files of the modules, below the folder that Python finds them in."""
        return tuple(module.replace(".", "/") + ".py" for module in self.modules)

    @property
    def configured(self) -> str:
        """Why a launch with a file of flags isn't wholly read."""
        return CONFIGURED.format(flag=self.config)


def _mentioned(
    modules: tuple[str, ...], commands: tuple[tuple[str] | tuple[str, str], ...]
) -> re.Pattern[str]:
    """Modules after `-m`, their files, and commands, with their subcommand if they have one."""
    ways = [rf"""-\w*m(?:\s|\\\n)*["']?{re.escape(one)}(?![\w.])""" for one in modules]
    ways += [rf"(?<![\w.-]){re.escape(one.replace('.', '/'))}\.py(?!\w)" for one in modules]
    gap = r"(?:[ \t]|\\\n){1,80}"
    ways += [rf"(?<![\w.-]){gap.join(map(re.escape, words))}(?![\w-])" for words in commands]
    return re.compile("|".join(ways) or r"(?!)")
