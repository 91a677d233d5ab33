"""`--engines`: which of the installed plugins a command uses, the same for every command that plans."""

from __future__ import annotations

import json
import sys
from importlib.metadata import EntryPoint
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from ome.cli.main import main
from ome.engines import (
    CONTRACT,
    Basis,
    Container,
    Detection,
    Dialect,
    EngineInfo,
    Finding,
    PodView,
    Profile,
    Severity,
    hookimpl,
)
from ome.testing.builders import runtime, service

REPORT = ("runtime", "effective", "chat", "-n", "demo")
COMMANDS: dict[str, tuple[tuple[str, ...], int]] = {
    "render": (("render",), 2),
    "lint": (("lint",), 2),
    "explain": (("explain", "--model", "m"), 1),
    "runtime effective": (REPORT, 1),
}


def plugin(name: str) -> ModuleType:
    """A plugin that recognises images with `engine` in their name and finds one thing."""

    def findings(view: PodView) -> list[Finding]:
        return [Finding("Seen", Severity.WARNING, f"seen by {name}", fix="nothing")]

    def detect(container: Container) -> Detection | None:
        return Detection(Basis.IMAGE) if "engine" in container.image else None

    def profiles() -> list[Profile]:
        probe = {"httpGet": {"path": f"/{name}", "port": 1}}
        return [Profile("http", probes={"readinessProbe": probe})] if "clash" in name else []

    module = ModuleType(f"fake_{name}")
    module.ome_describe = hookimpl(lambda: EngineInfo(name, CONTRACT, ""))  # type: ignore[attr-defined]
    module.ome_detect = hookimpl(detect)  # type: ignore[attr-defined]
    module.ome_dialect = hookimpl(lambda: Dialect())  # type: ignore[attr-defined]
    module.ome_profiles = hookimpl(profiles)  # type: ignore[attr-defined]
    module.ome_findings = hookimpl(findings)  # type: ignore[attr-defined]
    return module


def install(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    """Have these plugins installed alone; there is no module behind `bad`."""
    for name in names:
        if name != "bad":
            monkeypatch.setitem(sys.modules, f"fake_{name}", plugin(name))
    points = [EntryPoint(name, f"fake_{name}", "ome.engines") for name in names]
    monkeypatch.setattr("stevedore.extension.ExtensionManager.list_entry_points", lambda _: points)


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two plugins that recognise the same images, and one that doesn't load."""
    install(monkeypatch, "one", "two", "bad")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.yaml"
    level = {"runner": {"name": "ome-container", "image": "engine:v1"}}
    path.write_text(yaml.safe_dump_all([runtime(level).raw, service().raw]))
    return path


def run(capsys: pytest.CaptureFixture[str], *arguments: Any) -> tuple[int, str, str]:
    code = main([str(argument) for argument in arguments])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


SEEN = "Warning: InferenceService/demo/chat: engine container ome-container: seen by {}; nothing\n"
TIE = "engines one, two all recognise the container engine:v1; none is used"
WHY = "import failed: ModuleNotFoundError: No module named 'fake_bad'"
FAILED = f"engine plugin bad of fake_bad isn't used: {WHY}"
UNKNOWN = "no installed engine plugin is named {}; installed: bad, one, two"


@pytest.mark.parametrize(
    ("flags", "seen"),
    [
        (["--engines", "one"], SEEN.format("one")),
        (["--engines", "two"], SEEN.format("two")),
        (["--engines", "two,two"], SEEN.format("two")),
        (["--engines", "none"], ""),
    ],
)
def test_only_the_named_plugins_are_used(
    flags: list[str], seen: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "render", "-f", file, *flags)
    assert (code, err) == (0, seen)


@pytest.mark.parametrize(
    "flags", [["--engines", "one,two"], ["--engines", " two , one "], ["--engines=one"] * 2]
)
def test_several_names(flags: list[str], file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, _, err = run(capsys, "render", "-f", file, *flags, "--engines", "two")
    assert TIE in err
    assert FAILED not in err


def test_without_the_flag_all_are_used(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, _, err = run(capsys, "render", "-f", file)
    assert TIE in err
    assert FAILED in err


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("tow", UNKNOWN.format("tow")),
        ("one,tow", UNKNOWN.format("tow")),
        ("One", UNKNOWN.format("One")),
        ("", '--engines: a name is missing; name plugins, or "none" to use no plugin'),
        ("one,", '--engines: a name is missing; name plugins, or "none" to use no plugin'),
        ("none,one", '--engines: "none" can\'t stand beside names; remove it, or the names'),
        ("one,none", '--engines: "none" can\'t stand beside names; remove it, or the names'),
        ("bad", FAILED),
    ],
)
@pytest.mark.parametrize("command", COMMANDS)
def test_names_that_can_not_be_used(
    command: str, value: str, message: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments, code = COMMANDS[command]
    told = run(capsys, *arguments, "-f", file, "--engines", value)
    assert told == (code, "", f"error: {message}\n")


def test_names_where_nothing_is_installed(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(monkeypatch)
    text = "error: no installed engine plugin is named one; installed: none\n"
    assert run(capsys, "render", "-f", file, "--engines", "one") == (2, "", text)
    assert run(capsys, "render", "-f", file, "--engines", "none")[::2] == (0, "")


def test_a_clash_with_a_plugin_that_is_not_used_is_none(
    file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    install(monkeypatch, "clash1", "clash2")
    _, _, err = run(capsys, "render", "-f", file)
    assert 'its profile "http" differs from that of' in err
    told = run(capsys, "render", "-f", file, "--engines", "clash2")
    assert told[::2] == (0, SEEN.format("clash2"))


def test_both_sides_of_a_diff_use_them(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = run(capsys, "diff", file, file, "--engines", "one")
    assert told == (0, "no service changes\n", "")
    code, out, err = run(capsys, "diff", file, file, "--engines", "tow")
    assert (code, out) == (2, "")
    assert err == f"error: {UNKNOWN.format('tow')}\n"


def handed(tmp_path: Path, engines: dict[str, str]) -> tuple[str, Path]:
    """A program that stands in for another interpreter, and where it writes what it is asked."""
    told = {"protocol": 1, "ome": "9", "engines": engines, "failed": [], "services": []}
    python, asked = tmp_path / "python", tmp_path / "asked"
    python.write_text(f"#!/bin/sh\nprintf %s \"$3\" > '{asked}'\necho '{json.dumps(told)}'\n")
    python.chmod(0o755)
    return str(python), asked


@pytest.mark.parametrize(
    ("flags", "names"),
    [([], None), (["--engines", "two,one"], ["one", "two"]), (["--engines", "none"], [])],
)
def test_another_interpreter_is_told(
    flags: list[str],
    names: list[str] | None,
    tmp_path: Path,
    file: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    python, asked = handed(tmp_path, {})
    run(capsys, "diff", file, "--before-python", python, *flags)
    assert json.loads(asked.read_text()).get("engines") == names


@pytest.mark.parametrize("used", [{"one": "1", "two": "1"}, {"two": "1"}])
def test_another_interpreter_that_does_not_heed_them(
    used: dict[str, str], tmp_path: Path, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    python, _ = handed(tmp_path, used)
    told = run(capsys, "diff", file, "--before-python", python, "--engines", "one")
    why = "its ome is too old to be told --engines; upgrade ome there"
    assert told == (2, "", f"error: --before-python {python}: {why}\n")
