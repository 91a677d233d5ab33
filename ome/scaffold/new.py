"""`ome engines new`: a complete plugin project from the templates in `plugin/`.

Nothing is left behind when it fails: the project is written beside its place, and moved there when it is
whole.
"""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Mapping
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final

from jinja2 import StrictUndefined
from jinja2.sandbox import ImmutableSandboxedEnvironment

from ome.api import OmeError, Problem

__all__ = ["NAME", "names_of", "render_project", "write_project"]

NAME: Final = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
LONGEST: Final = 40
_SUFFIX: Final = ".j2"


def names_of(name: str) -> dict[str, str]:
    """What the templates call an engine. Raises OmeError for a name that can't be one."""
    if not NAME.fullmatch(name) or len(name) > LONGEST:
        text = (
            f'"{name}" can\'t be the name of an engine: it has lower-case letters, digits and single '
            f"dashes between them, begins with a letter, and is at most {LONGEST} long"
        )
        raise OmeError(Problem("EngineName", text, fix="choose another, such as my-engine"))
    parts = name.split("-")
    return {
        "name": name,
        "command": name,
        "distribution": f"ome-engine-{name}",
        "package": f"ome_engine_{'_'.join(parts)}",
        "prefix": "".join(part.capitalize() for part in parts),
        "title": " ".join(part.capitalize() for part in parts),
    }


def render_project(name: str) -> dict[str, str]:
    """The files of a new plugin by path. Raises OmeError for a bad name."""
    names = names_of(name)
    environment = ImmutableSandboxedEnvironment(
        undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False
    )
    found = {}
    for path, text in sorted(_templates(files("ome.scaffold").joinpath("plugin"), "").items()):
        target = path.removesuffix(_SUFFIX).replace("package/", f"{names['package']}/")
        found[target] = environment.from_string(text).render(names)
    return found


def _templates(folder: Traversable, prefix: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for item in folder.iterdir():
        path = f"{prefix}{item.name}"
        if item.is_dir():
            found |= _templates(item, f"{path}/")
        elif path.endswith(_SUFFIX):
            found[path] = item.read_text("utf-8")
    return found


def write_project(project: Mapping[str, str], directory: Path) -> None:
    """Write a project to a directory that doesn't exist yet, or is empty. Raises OmeError."""
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        text = f"{directory} exists, and isn't an empty directory"
        raise OmeError(Problem("DirectoryTaken", text, fix="name another with --directory"))
    try:
        directory.parent.mkdir(parents=True, exist_ok=True)
        made = Path(tempfile.mkdtemp(prefix=f".{directory.name}-", dir=directory.parent))
        try:
            for path, text in project.items():
                target = made / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_text(text, "utf-8")
            made.chmod(0o755)
            if directory.exists():
                directory.rmdir()
            made.rename(directory)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    except OSError as error:
        text = f"can't write {directory}: {error.strerror}"
        raise OmeError(Problem("DirectoryUnwritable", text)) from None
