"""The Dockerfile: what it copies is there, its arguments are used, and its pip commands work."""

from __future__ import annotations

import re
from pathlib import Path

from tests.scaffold.conftest import Environment

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "images/Dockerfile").read_text()


def test_what_is_copied_is_there() -> None:
    copied = [
        path
        for line in re.findall(r"^COPY (?!--from)(.+)$", TEXT, re.MULTILINE)
        for path in line.split()[:-1]
    ]
    assert "ome" in copied
    assert [path for path in copied if not (ROOT / path).exists()] == []


def test_arguments_are_used_and_nobody_is_root() -> None:
    arguments = re.findall(r"^ARG (\w+)=", TEXT, re.MULTILINE)
    assert arguments == ["PYTHON", "EXTRA_PACKAGES"]
    assert [name for name in arguments if f"${{{name}}}" not in TEXT] == []
    *_, last = re.findall(r"^FROM .*?(?=^FROM|\Z)", TEXT, re.MULTILINE | re.DOTALL)
    assert re.search(r"^USER 65532:65532$", last, re.MULTILINE)
    assert 'ENTRYPOINT ["ome"]' in last


def test_an_extra_package_is_used(environment: Environment, tmp_path: Path) -> None:
    for command in (
        "ome engines new my-engine",
        "pip install --quiet ./ome-engine-my-engine",
        "ome engines",
    ):
        done = environment.run(command, tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "ome-engine-my-engine" in done.stdout
    done = environment.run("ome lint -f /dev/null --engines my-engine", tmp_path)
    assert (done.returncode, done.stdout) == (0, "no findings\n")
