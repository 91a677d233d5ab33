"""`ome engines new`: what it writes, what it refuses, and that our own plugins are of the same kind."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
import types
from pathlib import Path
from typing import Any

import pytest

from ome.cli.main import main
from ome.engines import CONTRACT, EngineInfo, hookimpl
from ome.engines.engines import Engines, LoadError, register
from ome.scaffold.new import render_project
from tests.scaffold.conftest import Environment

ROOT = Path(__file__).parents[2]
PLUGINS = sorted(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))
# A preset needs no detection: what it lacks of the template.
PRESETS_ALONE = {"sglang_pd"}
# What a plugin's hooks differ in from the template's: those that it lacks, and those that it has beside.
OTHER_HOOKS = {
    "sglang_pd": (
        {"ome_detect", "ome_dialect", "ome_findings", "ome_geometry", "ome_profiles"},
        {"ome_presets"},
    )
}
# The choices that the template leaves to its author; and the tools that our plugins share in this repository.
OUR_FIELDS = {"project.authors", "project.license"}
TEMPLATE_FIELDS = {"project.optional-dependencies", "tool.pytest", "tool.ruff"}
ENGINE_FILES = {
    "detect.py",
    "findings.py",
    "flags.json",
    "flags.py",
    "hints.json",
    "launch.py",
}


def test_a_new_project_passes_its_tests(environment: Environment, tmp_path: Path) -> None:
    for command in (
        "ome engines new my-engine",
        "pip install --quiet --editable './ome-engine-my-engine[test]'",
        "cd ome-engine-my-engine && pytest --quiet",
    ):
        done = environment.run(command, tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
    assert "passed" in done.stdout
    listed = environment.run("ome engines", tmp_path).stdout
    assert ["my-engine", "Ready", "ome-engine-my-engine"] in [
        line.split()[:3] for line in listed.splitlines()
    ]


@pytest.mark.parametrize("name", ["x", "my-engine"])
def test_a_new_project_is_clean(name: str, tmp_path: Path) -> None:
    assert main(["engines", "new", name, "--directory", str(tmp_path / "p")]) == 0
    package = f"p/ome_engine_{name.replace('-', '_')}"
    for tool in (["ruff", "check", "--select=E,F,I,UP,B,RUF"], ["ruff", "format", "--check"]):
        done = subprocess.run(
            [sys.executable, "-m", *tool, str(tmp_path / "p")],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--no-incremental",
            str(tmp_path / package),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("MyEngine", '"MyEngine" can\'t be the name of an engine'),
        ("my engine", '"my engine" can\'t be the name of an engine'),
        ("../up", '"../up" can\'t be the name of an engine'),
        ("1st", '"1st" can\'t be the name of an engine'),
        ("a-" * 30 + "a", "at most 40 long"),
        ("none", '"none" can\'t be the name of an engine: `--engines none` uses no plugin'),
    ],
)
def test_names_that_can_not_be(
    name: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["engines", "new", name]) == 1
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "failed", [[], [LoadError("my_own", "ome-engine-my-own", "import failed")]]
)
def test_a_name_that_is_taken(
    failed: list[LoadError],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken = types.SimpleNamespace(ome_describe=hookimpl(lambda: EngineInfo("mine", CONTRACT, "x")))
    engines = Engines([register(taken, distribution="ome-engine-mine", version="1")], failed)
    name = "my-own" if failed else "mine"
    monkeypatch.setattr("ome.cli.newengine.discover", lambda: engines)
    monkeypatch.chdir(tmp_path)
    assert main(["engines", "new", name]) == 1
    message = f'there is an engine "{name}" already, of ome-engine-{name}; choose another name'
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_directory_that_is_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "kept").write_text("x")
    assert main(["engines", "new", "my-engine", "--directory", str(tmp_path)]) == 1
    assert "exists, and isn't an empty directory; name another" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["kept"]
    (tmp_path / "empty").mkdir()
    assert main(["engines", "new", "my-engine", "--directory", str(tmp_path / "empty")]) == 0


def test_a_directory_that_can_not_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("x")
    assert main(["engines", "new", "my-engine", "--directory", str(tmp_path / "file/p")]) == 1
    assert "error: can't write" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def hooks_in(text: str) -> set[str]:
    """The hooks that a module implements, read without importing it: it need not be installed."""
    return {
        each.name
        for each in ast.parse(text).body
        if isinstance(each, ast.FunctionDef)
        and any(
            isinstance(mark, ast.Name) and mark.id == "hookimpl" for mark in each.decorator_list
        )
    }


def fields_in(project: dict[str, Any]) -> set[str]:
    """The sections of a pyproject.toml, and the keys of `project` and `tool` with them."""
    inner = {f"{top}.{key}" for top in ("project", "tool") for key in project[top]}
    return {*project, *inner}


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda path: path.name)
def test_our_plugins_have_the_hooks_and_the_sections_of_the_template(plugin: Path) -> None:
    name, package = plugin.name.replace("_", "-"), f"ome_engine_{plugin.name}"
    template = render_project(name)
    hooks = hooks_in(template[f"{package}/plugin.py"])
    assert "ome_describe" in hooks
    lacking, more = OTHER_HOOKS.get(plugin.name, (set(), set()))
    found = hooks_in((plugin / package / "plugin.py").read_text())
    assert (hooks - found, found - hooks) == (lacking, more)
    ours = fields_in(tomllib.loads((plugin / "pyproject.toml").read_text()))
    theirs = fields_in(tomllib.loads(template["pyproject.toml"]))
    assert (ours - theirs, theirs - ours) == (OUR_FIELDS, TEMPLATE_FIELDS)


def test_no_test_of_the_core_imports_a_plugin() -> None:
    for path in sorted((ROOT / "tests").rglob("*.py")):
        imported = re.findall(
            r"^\s*(?:from|import) (ome_engine_\w+)", path.read_text(), re.MULTILINE
        )
        assert imported == [], path


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda path: path.name)
def test_our_plugins_are_of_the_same_kind(plugin: Path) -> None:
    name = plugin.name.replace("_", "-")
    package = f"ome_engine_{plugin.name}"
    expected = set(render_project(name))
    if plugin.name in PRESETS_ALONE:
        expected -= {f"{package}/{file}" for file in ENGINE_FILES} | {"tests/test_findings.py"}
    there = {str(path.relative_to(plugin)) for path in plugin.rglob("*") if path.is_file()}
    assert expected <= there
    ours = tomllib.loads((plugin / "pyproject.toml").read_text())
    template = tomllib.loads(render_project(name)["pyproject.toml"])
    assert ours["build-system"] == template["build-system"]
    for field in ("name", "readme", "requires-python", "dependencies"):
        assert ours["project"][field] == template["project"][field]
    points = ours["project"]["entry-points"]["ome.engines"]
    assert list(points.values()) == [f"{package}.plugin"]
    assert ours["tool"]["hatch"] == template["tool"]["hatch"]
    assert "__version__" in (plugin / package / "__init__.py").read_text()
