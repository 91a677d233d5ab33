"""Frozen pod templates: what restarts pods when it changes, of the examples and of cases of our own.

`make pods` renders every case and writes its `pods.yaml`; with `--check` this writes nothing and exits 1
when one differs. A case is a folder with an `input.yaml`, or one with the name of a folder of `examples/`.
Those of `tests/golden/pods` are rendered without engine plugins, those of `plugins/tests/pods` with all of
OME's. docs/upgrades.md says what is frozen and why.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, Final

import yaml

from ome.api.directives import MERGE_KEYS
from ome.cli.output import to_yaml
from ome.engines.discovery import discover, plain_name
from ome.engines.engines import Engines
from ome.planning.plan import Plan
from ome.planning.planner import plan
from ome.snapshot import Snapshot
from ome.sources import InstalledPresets, load, read_paths

__all__ = [
    "CORE",
    "WITH_PLUGINS",
    "cases",
    "check",
    "complaint",
    "differences",
    "freeze",
    "main",
    "own_engines",
    "plans",
    "sources",
    "workloads",
]

Json = Mapping[str, Any]

ROOT: Final = Path(__file__).resolve().parent.parent
CORE: Final = ROOT / "tests" / "golden" / "pods"
WITH_PLUGINS: Final = ROOT / "plugins" / "tests" / "pods"
_FROZEN: Final = "pods.yaml"
_HEADER: Final = (
    "# Written by tools/podtemplates.py. A change here restarts pods: docs/upgrades.md.\n"
)
_PODLESS: Final = frozenset(
    {
        "HorizontalPodAutoscaler",
        "PodDisruptionBudget",
        "PodMonitor",
        "Role",
        "RoleBinding",
        "ScaledObject",
        "Service",
        "ServiceAccount",
    }
)
_MEANING: Final = (
    "This restarts the pods of every such service when OME or a plugin is upgraded. Keep the pods as they "
    "were. If they have to change, have it decided in review, say it in CHANGELOG.md, and accept it with: "
    "make pods"
)
_SELECTOR: Final = (
    "A selector can't be changed: the API server refuses it until the workload is deleted."
)
_REWRITTEN: Final = "the pods are the same, and written otherwise than the tool writes them"


def cases(folder: Path) -> list[Path]:
    """The cases below a folder, by name."""
    return sorted(each for each in folder.iterdir() if each.is_dir())


def sources(case: Path) -> Path:
    """Where the manifests of a case are. Raises FileNotFoundError."""
    for found in (case / "input.yaml", ROOT / "examples" / case.name):
        if found.exists():
            return found
    raise FileNotFoundError(f"{case} has no input.yaml, and examples/ has no {case.name}")


def own_engines() -> Engines:
    """All of OME's own engine plugins and no other. Raises OmeError when one isn't installed."""
    found = [each.parent.name for each in (ROOT / "plugins").glob("*/pyproject.toml")]
    engines = discover(only=map(plain_name, found))
    if engines.errors:
        raise RuntimeError(f"engine plugins can't be loaded: {engines.errors}")
    return engines


def plans(path: Path, engines: Engines, *, provenance: bool = False) -> list[Plan]:
    """The plans of every service in the manifests of a path."""
    presets = InstalledPresets(engines)
    loaded = load(read_paths([str(path)]), presets=presets)
    snapshot = Snapshot.of(
        loaded.objects, config=loaded.config, revisions=loaded.revisions, presets=presets
    )
    return [plan(snapshot, each, engines, provenance=provenance) for each in snapshot.services()]


def workloads(found: Sequence[Plan]) -> Iterator[Json]:
    """What decides of each workload whether its pods stay: the template and the selector.

    Raises ValueError for an object that may have pods and isn't known.
    """
    for each in found:
        for item in each.objects():
            if item["kind"] in _PODLESS:
                continue
            if "template" not in (item.get("spec") or {}):
                raise ValueError(f"where does a {item['kind']} have its pods? Teach {__file__}")
            yield {
                "kind": item["kind"],
                "namespace": item["metadata"]["namespace"],
                "name": item["metadata"]["name"],
                "selector": item["spec"]["selector"],
                "template": item["spec"]["template"],
            }


def freeze(path: Path, engines: Engines) -> str:
    """The workloads of a path's manifests as the text of a `pods.yaml`. Raises ValueError without any."""
    found = plans(path, engines)
    documents = [_sorted(each) for each in workloads(found)]
    if not documents:
        reasons = [str(problem) for each in found for _, problem in each.refusals()]
        raise ValueError(f"{path} renders no pods: {'; '.join(reasons) or 'it has no service'}")
    return _HEADER + to_yaml(documents)


def check(case: Path, engines: Engines) -> None:
    """Compare what a case renders to with what is frozen. Raises AssertionError that says what differs."""
    if found := _change(case, engines):
        path, before, text = found
        raise AssertionError(complaint(_name(path), differences(before, text)))


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _sorted(value: Any) -> Any:
    """Keys in order, so that equal pods are equal text; lists stay as they are."""
    if isinstance(value, Mapping):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(each) for each in value] if isinstance(value, list) else value


def differences(before: str, after: str) -> list[str]:
    """What differs between two texts of `freeze`: a line for each field, with its workload."""
    old, new = _by_name(before), _by_name(after)
    lines: list[str] = []
    for name in sorted({*old, *new}):
        if name not in new:
            lines.append(f"{name}: is no longer rendered")
        elif name not in old:
            lines.append(f"{name}: is rendered and not frozen")
        else:
            found = _walk("", old[name], new[name])
            lines += [f"{name}: {path}: {was} -> {now}" for path, was, now in found]
    return lines or ([_REWRITTEN] if before != after else [])


def complaint(case: str, found: Sequence[str]) -> str:
    """What somebody is told whose change of OME changes frozen pods."""
    lines = [f"{case}: pod templates are not as frozen", *(f"  {each}" for each in found), _MEANING]
    if any(": selector." in each for each in found):
        lines.append(_SELECTOR)
    return "\n".join(lines)


def _by_name(text: str) -> dict[str, Json]:
    return {
        f"{each['kind']}/{each['namespace']}/{each['name']}": each
        for each in yaml.safe_load_all(text)
        if each
    }


_Change = tuple[str, str, str]
_ABSENT: Final = object()


def _walk(path: str, before: Any, after: Any) -> Iterator[_Change]:
    """The fields that differ, each with both values."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted({*before, *after}):
            joined = f"{path}[{key}]" if "/" in key or "." in key else f"{path}.{key}".lstrip(".")
            yield from _walk(joined, before.get(key, _ABSENT), after.get(key, _ABSENT))
    elif isinstance(before, list) and isinstance(after, list):
        yield from _walk_list(path, before, after)
    elif _shown(before) != _shown(after):
        yield path, _shown(before), _shown(after)


def _walk_list(path: str, before: list[Any], after: list[Any]) -> Iterator[_Change]:
    """Items of keyed lists by their key and then the order, words of others where they stand."""
    key = MERGE_KEYS.get(path.rpartition(".")[2], "name")
    old, new = _keyed(before, key), _keyed(after, key)
    if old is None or new is None:
        words, others = [_shown(each) for each in before], [_shown(each) for each in after]
        for tag, a, b, c, d in SequenceMatcher(None, words, others, False).get_opcodes():
            if tag != "equal":
                yield f"{path}[{a}]", _listed(words[a:b]), _listed(others[c:d])
        return
    for label in dict.fromkeys((*old, *new)):
        yield from _walk(f"{path}[{label}]", old.get(label, _ABSENT), new.get(label, _ABSENT))
    kept = [[label for label in each if label in old and label in new] for each in (old, new)]
    if kept[0] != kept[1]:
        yield f"{path} (order)", _shown(kept[0]), _shown(kept[1])


def _keyed(items: list[Any], key: str) -> dict[Any, Any] | None:
    """The items by their key; None when it doesn't tell them apart."""
    if not all(isinstance(each, dict) and key in each for each in items):
        return None
    found = {each[key]: each for each in items}
    return found if len(found) == len(items) else None


def _shown(value: Any) -> str:
    if value is _ABSENT:
        return "absent"
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _listed(words: Sequence[str]) -> str:
    return ", ".join(words) or "absent"


def main(arguments: Sequence[str] | None = None) -> int:
    """Write or check the frozen templates; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--check", action="store_true", help="write nothing, exit 1 on a change")
    is_check = parser.parse_args(arguments).check
    found = [
        changed
        for folder, engines in ((CORE, Engines()), (WITH_PLUGINS, own_engines()))
        for case in cases(folder)
        if (changed := _change(case, engines))
    ]
    for path, before, text in found:
        lines = differences(before, text)
        if is_check:
            print(complaint(_name(path), lines), file=sys.stderr)
        else:
            path.write_text(text)
            print("\n  ".join([f"podtemplates: wrote {_name(path)}", *lines]))
    return 1 if found and is_check else 0


def _change(case: Path, engines: Engines) -> tuple[Path, str, str] | None:
    """The file of a case with what it holds and what it should; None when that is the same."""
    path = case / _FROZEN
    before = path.read_text() if path.is_file() else ""
    text = freeze(sources(case), engines)
    return None if before == text else (path, before, text)


if __name__ == "__main__":
    raise SystemExit(main())
