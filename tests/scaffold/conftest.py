"""A temporary Python environment that has what this one has, and its own packages before that."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
from dataclasses import dataclass
from pathlib import Path

import pytest

PROGRAMS = {
    "ome": "from ome.cli.main import run; run()",
    "pytest": "import pytest; sys.exit(pytest.console_main())",
    # Nothing comes from an index in tests: what is to be built is built with what is here.
    "pip": (
        "from pip._internal.cli.main import main; "
        "flags = ['--no-index', '--no-build-isolation'] if sys.argv[1] == 'install' else []; "
        "sys.exit(main([*sys.argv[1:], *flags]))"
    ),
}


@dataclass(frozen=True)
class Environment:
    """Where it is; `run` runs a shell command in a directory, as a person would with it activated."""

    home: Path

    def run(self, command: str, directory: Path) -> subprocess.CompletedProcess[str]:
        path = f"{self.home / 'bin'}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run(
            command,
            shell=True,
            cwd=directory,
            env={**os.environ, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "200"},
            capture_output=True,
            text=True,
            check=False,
        )


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    home = tmp_path / "environment"
    venv.create(home, symlinks=True)
    packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(home)}))
    here = sysconfig.get_path("purelib")
    (packages / "more.pth").write_text(f"import site; site.addsitedir({here!r})\n")
    for name, code in PROGRAMS.items():
        program = home / "bin" / name
        program.write_text(f"#!{home / 'bin/python'}\nimport sys; {code}\n")
        program.chmod(0o755)
    assert sys.version_info[:2] >= (3, 11)
    return Environment(home)
