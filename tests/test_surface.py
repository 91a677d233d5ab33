"""Completeness: what is public is what is there, and every hook is specified, documented and tested."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from pathlib import Path
from types import ModuleType

import pytest

import ome
from ome.engines import Basis, Container, Detection, PodView, hookspecs
from ome.engines.engines import Engines, register

ROOT = Path(__file__).resolve().parents[1]
MODULES = [
    importlib.import_module(info.name) for info in pkgutil.walk_packages(ome.__path__, "ome.")
]
HOOKS = [name for name in vars(hookspecs) if name.startswith("ome_")]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_all_is_sorted_and_real(module: ModuleType) -> None:
    public = getattr(module, "__all__", None)
    if public is None:
        assert not [
            name
            for name, value in vars(module).items()
            if not name.startswith("_")
            and inspect.isfunction(value)
            and value.__module__ == module.__name__
        ], "public functions and no __all__"
        return
    assert len(set(public)) == len(public)
    for name in public:
        assert hasattr(module, name), name


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_what_is_public_is_documented(module: ModuleType) -> None:
    assert module.__doc__, "no module docstring"
    for name in getattr(module, "__all__", ()):
        value = getattr(module, name)
        if inspect.isfunction(value) or inspect.isclass(value):
            assert inspect.getdoc(value), name


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_has_a_section_with_its_signature_and_a_test(hook: str) -> None:
    spec = getattr(hookspecs, hook)
    assert inspect.getdoc(spec)
    signature = f"{hook}{inspect.signature(spec)}".replace("'", "")
    text = (ROOT / "docs/plugins.md").read_text()
    sections = dict(re.findall(r"^## `([^`]+)`\n(.*?)(?=^## |\Z)", text, re.M | re.S))
    assert signature in sections, f"docs/plugins.md has no section `{signature}`"
    for part in ("@hookimpl", "Errors:", "Stability:"):
        assert part in sections[signature], f"{part} is missing in the section of {hook}"
    tests = [path.read_text() for path in (ROOT / "tests").rglob("test_*.py")]
    assert any(f"def test_hook_{hook}" in text for text in tests)


def test_the_plugin_of_the_documentation_is_one() -> None:
    text = (ROOT / "docs/plugins.md").read_text()
    made = ModuleType("documented")
    for block in re.findall(r"^```python\n(.*?)^```", text, re.M | re.S):
        exec(block, vars(made))
    engine = register(made, distribution="ome-engine-myengine", version="0.1.0")
    service = Container("myengine:1", ("myengine", "serve"), (), {})
    assert set(HOOKS) <= set(vars(made))
    assert engine.name == "myengine"
    assert Engines([engine]).recognise(service).engine == engine
    view = PodView("engine", {"args": []}, {"containers": []}, 0, Detection(Basis.COMMAND))
    (finding,) = made.ome_findings(view)
    assert finding.code == "HostMissing"


def test_no_machine_or_registry_stands_in_the_repository() -> None:
    pattern = re.compile(r"/(?:work|farm)/[a-z.]")
    for path in sorted(ROOT.rglob("*")):
        parts = path.relative_to(ROOT).parts
        if parts[0].startswith(".") or "__pycache__" in parts or not path.is_file():
            continue
        if (
            path.suffix in {".py", ".md", ".toml", ".txt", ".yaml", ".json"}
            or path.name == "Makefile"
        ):
            if path == Path(__file__).resolve():
                continue
            assert not pattern.search(path.read_text(encoding="utf-8")), path


def test_modules_and_functions_stay_small() -> None:
    for module in MODULES:
        path = Path(inspect.getfile(module))
        lines = path.read_text(encoding="utf-8").splitlines()
        assert len(lines) <= 400, f"{path} has {len(lines)} lines"
