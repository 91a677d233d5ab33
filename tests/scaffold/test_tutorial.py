"""The tutorial, carried out as it is written: its files are written, its commands run."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from tests.scaffold.conftest import Environment

ROOT = Path(__file__).parents[2]
STEP = re.compile(r"(?:^`([^`\n]+)`:\n\n)?^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands(block: str) -> list[tuple[str, list[str]]]:
    """Each command of a console block with the lines that it prints."""
    found: list[tuple[str, list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append((line[2:], []))
        else:
            found[-1][1].append(line)
    return found


def test_the_tutorial(environment: Environment, tmp_path: Path) -> None:
    """Every shown line is printed, in its order; `ome engines new` prints exactly what is shown."""
    before = status()
    place = tmp_path
    ran = []
    for file, _, text in STEP.findall((ROOT / "docs/tutorial-engine.md").read_text()):
        if file:
            (place / file).write_text(text)
            continue
        for command, shown in commands(text):
            if command.startswith("cd "):
                place = place / command[3:]
                continue
            done = environment.run(command, place)
            printed = (
                done.stdout + done.stderr if "render" not in command else done.stderr + done.stdout
            )
            assert done.returncode == 0, f"{command}\n{printed}"
            ran.append(command)
            lines = iter(line.rstrip() for line in printed.splitlines())
            for line in filter(None, shown):
                assert _like(line, lines), f"{command} doesn't print: {line}\n{printed}"
    assert ran == [
        "ome engines new llama-cpp",
        "pip install --quiet --editable '.[test]'",
        "pytest --quiet",
        "pytest --quiet",
        "ome engines",
        "ome render -f chat.yaml",
    ]
    assert status() == before, "the tutorial changed OME itself"


def _like(line: str, lines: object) -> bool:
    """Whether a line comes, with whatever space between its words."""
    return any(line.split() == other.split() for other in lines)  # type: ignore[attr-defined]


def status() -> str:
    done = subprocess.run(
        ["git", "status", "--porcelain"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout
