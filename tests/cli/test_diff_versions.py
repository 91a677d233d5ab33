"""`ome diff --before-python`: what an upgrade of OME or of a plugin changes, with a real second environment."""

from __future__ import annotations

import json
import shutil
import sysconfig
import venv
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from ome.cli.main import main
from ome.engines.discovery import discover
from ome.engines.engines import Engines, register
from ome.testing.builders import model, obj, runtime, service

ROOT = Path(__file__).parents[2]
PLUGIN = """\
from ome.engines import CONTRACT, Basis, Detection, Dialect, EngineInfo, hookimpl

@hookimpl
def ome_describe():
    return EngineInfo("fake", CONTRACT, "")

@hookimpl
def ome_detect(container):
    return Detection(Basis.IMAGE) if "fake" in container.image else None

@hookimpl
def ome_dialect(version):
    return Dialect(tensor=(SPELLINGS,))
"""
OLD, NEW = PLUGIN.replace("SPELLINGS", '"--ranks"'), PLUGIN.replace("SPELLINGS", '"--tp"')


def environment(home: Path, *, is_bare: bool = False) -> tuple[str, Path]:
    """A virtual environment without pip: its interpreter, and where its packages are. Unless it is bare it
    also has what this one has, after its own."""
    venv.create(home, symlinks=True)
    packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(home)}))
    if not is_bare:
        here = sysconfig.get_path("purelib")
        (packages / "more.pth").write_text(f"import site; site.addsitedir({here!r})\n")
    return str(home / "bin/python"), packages


def install_plugin(packages: Path, version: str, text: str) -> None:
    """What pip leaves of an engine plugin."""
    (packages / "ome_engine_fake.py").write_text(text)
    info = packages / f"ome_engine_fake-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.1\nName: ome-engine-fake\nVersion: {version}\n"
    )
    (info / "entry_points.txt").write_text("[ome.engines]\nfake = ome_engine_fake\n")


@pytest.fixture(autouse=True)
def new_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    """This environment has the plugin in version 0.2.0, and a PYTHONPATH that would mislead others."""
    module = ModuleType("ome_engine_fake")
    exec(NEW, module.__dict__)
    fake = register(module, distribution="ome-engine-fake", version="0.2.0")
    engines = Engines([*discover(), fake])
    monkeypatch.setattr("ome.cli.input.discover", lambda **_: engines)
    monkeypatch.setenv("PYTHONPATH", "/nowhere")


@pytest.fixture(scope="module")
def old_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    python, packages = environment(tmp_path_factory.mktemp("old") / "venv")
    install_plugin(packages, "0.1.0", OLD)
    return python


def write(path: Path, **changes: Any) -> str:
    """Two services on one runtime; the class sets the size of the fake engine's tensor flag."""
    settings = {"gpu": {"tensorParallelismOverride": {"tensorParallelSize": 4}}}
    runner = {"name": "ome-container", "image": "fake:v1", "args": ["--tp=8"], **changes}
    entry = {
        "modelFormat": {"name": "safetensors", "version": "1.0.0"},
        "modelFramework": {"name": "transformers", "version": "4.50.0"},
        "acceleratorConfig": settings,
    }
    objects = [
        runtime(
            {"runner": runner},
            supportedModelFormats=[entry],
            acceleratorRequirements={"acceleratorClasses": ["gpu"]},
        ),
        model(),
        obj("AcceleratorClass", "gpu", {"discovery": {}, "capabilities": {}}),
        *(
            service(name, model={"name": "m"}, acceleratorSelector={"acceleratorClass": "gpu"})
            for name in ("one", "two")
        ),
    ]
    path.write_text(yaml.safe_dump_all(item.raw for item in objects))
    return str(path)


def diff(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = main(["diff", *arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


UPGRADE = "plugin fake 0.1.0 -> 0.2.0"


def test_an_upgrade_of_a_plugin(
    old_python: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = write(tmp_path / "a.yaml")
    code, out, err = diff(capsys, files, "--before-python", old_python)
    assert (code, err) == (1, "")
    assert out.startswith(
        f"Versions: {UPGRADE}\n"
        "2 service(s) change, 2 Deployment(s) restart their pods\n"
        "\n"
        "By cause:\n"
        f"  {UPGRADE}: containers[ome-container].args: demo/one, demo/two\n"
        "\n"
        "Changed demo/one\n"
        "  restarts the pods of Deployment/one-engine\n"
        f"  Deployment/one-engine spec.template.spec.containers[ome-container].args ({UPGRADE})\n"
        "      - --tp=8\n"
        "      + --tp=4\n"
    )
    assert diff(capsys, files, files, "--before-python", old_python)[1] == out
    _, out, _ = diff(capsys, files, "--before-python", old_python, "-o", "markdown")
    assert out.startswith(f"Versions: {UPGRADE}\n\n**2 service(s) change")
    assert f"| {UPGRADE} | `containers[ome-container].args` | 2: demo/one, demo/two |" in out
    _, out, _ = diff(capsys, files, "--before-python", old_python, "-o", "json")
    assert json.loads(out)["versions"] == UPGRADE


def test_an_upgrade_together_with_a_change(
    old_python: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = write(tmp_path / "a.yaml")
    after = write(tmp_path / "b.yaml", image="fake:v2", args=["--tp=8", "--more=1"])
    _, out, _ = diff(capsys, before, after, "--before-python", old_python, "-o", "json")
    assert {item["field"]: item["cause"] for item in json.loads(out)["causes"]} == {
        "containers[ome-container].image": "ClusterServingRuntime/rt",
        "containers[ome-container].args": f"ClusterServingRuntime/rt and {UPGRADE}",
    }


def test_an_upgrade_that_changes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    python, packages = environment(tmp_path / "venv")
    install_plugin(packages, "0.1.0", NEW)
    files = write(tmp_path / "a.yaml")
    shown = f"Versions: {UPGRADE}\nno service changes\n"
    assert diff(capsys, files, "--before-python", python) == (0, shown, "")
    _, out, _ = diff(capsys, files, "--before-python", python, "-o", "markdown")
    assert out == f"Versions: {UPGRADE}\n\nNo service changes.\n"


def test_an_upgrade_of_ome_and_a_plugin_that_comes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    python, packages = environment(tmp_path / "venv")
    shutil.copytree(ROOT / "ome", packages / "ome", ignore=shutil.ignore_patterns("__pycache__"))
    old = packages / "ome/__init__.py"
    old.write_text(old.read_text().replace('__version__ = "', '__version__ = "0.0.'))
    code, out, _ = diff(capsys, write(tmp_path / "a.yaml"), "--before-python", python)
    assert code == 0
    assert out == (
        "Versions: ome 0.0.0.1.0 -> 0.1.0 and plugin fake absent -> 0.2.0\nno service changes\n"
    )


def test_another_build_of_the_same_versions(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    python, packages = environment(tmp_path / "venv")
    install_plugin(packages, "0.2.0", OLD)
    code, out, _ = diff(capsys, write(tmp_path / "a.yaml"), "--before-python", python)
    assert code == 1
    assert "  another build of the same versions: containers[ome-container].args: " in out


def test_a_plugin_that_fails_there_and_one_that_prints(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    python, packages = environment(tmp_path / "venv")
    install_plugin(packages, "0.1.0", 'print("hello")\nraise RuntimeError("broken")\n')
    _, out, err = diff(capsys, write(tmp_path / "a.yaml"), "--before-python", python)
    assert out.startswith("Versions: plugin fake absent -> 0.2.0\n")
    assert err == (
        "Warning: before: engine plugin fake of ome-engine-fake: import failed: RuntimeError: broken\n"
    )


def script(path: Path, text: str) -> str:
    """A program that stands in for an interpreter."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


ANSWER = {"protocol": 1, "ome": "9", "engines": {}, "failed": []}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("echo hello", "its answer can't be read: it is no answer of ome"),
        ("echo '[]'", "its answer can't be read: it is no answer of ome"),
        ("echo '{}'", "its answer can't be read: it is no answer of ome"),
        (
            f"echo '{json.dumps({**ANSWER, 'services': [{}]})}'",
            "its answer can't be read: KeyError: 'service'",
        ),
        (
            f"echo '{json.dumps({**ANSWER, 'protocol': 7})}'",
            "its ome 9 speaks protocol 7, this ome 0.1.0 speaks 1; upgrade the older of the two",
        ),
        ("echo oh >&2; echo no >&2; exit 3", "it ended with code 3: no"),
        ("exit 3", "it ended with code 3: it says nothing"),
    ],
)
def test_answers_that_are_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, why: str
) -> None:
    python = script(tmp_path / "python", text)
    code, out, err = diff(capsys, write(tmp_path / "a.yaml"), "--before-python", python)
    assert (code, out, err) == (2, "", f"error: --before-python {python}: {why}\n")


def test_environments_without_a_usable_ome(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = write(tmp_path / "a.yaml")
    gone = str(tmp_path / "gone/bin/python")
    bare, packages = environment(tmp_path / "venv", is_bare=True)
    code, out, err = diff(capsys, files, "--before-python", gone)
    why = "No such file or directory; name a Python interpreter"
    assert (code, out, err) == (2, "", f"error: --before-python {gone}: {why}\n")
    code, out, err = diff(capsys, files, "--before-python", bare)
    why = f"ome isn't installed there; {bare} -m pip install ome"
    assert (code, out, err) == (2, "", f"error: --before-python {bare}: {why}\n")
    (packages / "ome/cli").mkdir(parents=True)
    (packages / "ome/__init__.py").write_text("")
    (packages / "ome/cli/__init__.py").write_text("")
    code, out, err = diff(capsys, files, "--before-python", bare)
    why = "its ome is too old to be compared with; upgrade ome there"
    assert (code, out, err) == (2, "", f"error: --before-python {bare}: {why}\n")


def test_input_that_only_the_other_version_refuses(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = json.dumps({**ANSWER, "faults": ["a.yaml: line 1: no such kind"]})
    python = script(tmp_path / "python", f"echo '{answer}'")
    code, out, err = diff(capsys, write(tmp_path / "a.yaml"), "--before-python", python)
    assert (code, out) == (2, "")
    assert err == f"error: before, with {python}: a.yaml: line 1: no such kind\n"


def test_what_there_is_nothing_to_compare_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = write(tmp_path / "a.yaml")
    assert diff(capsys, files) == (
        2,
        "",
        "error: AFTER is missing: there is one input only; name AFTER, or --before-python\n",
    )
    assert diff(capsys, "-", files, "--before-python", "x") == (
        2,
        "",
        "error: BEFORE can't be standard input with --before-python: it is read twice; write it to a "
        "file\n",
    )
