"""Provenance: which layer set each leaf of a component. Only built when somebody asks.

Every step of the pipeline hands over what it got and what it made; the difference is the step's.
A merge also owns what its overlay repeats, since the overlay's value is the one that counts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from difflib import SequenceMatcher
from typing import Any, Final

from ome.api.directives import MERGE_KEYS

__all__ = ["Trace", "leaves"]


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every leaf with its path. Items of keyed lists are named by their key (`env[LOG].value`); a
    list of plain values is one leaf, a tuple."""
    if isinstance(value, Mapping) and value:
        for name, item in value.items():
            yield from leaves(item, _join(path, name))
    elif isinstance(value, list) and value and isinstance(value[0], dict):
        key = MERGE_KEYS.get(path.rpartition(".")[2])
        for at, item in enumerate(value):
            label = item.get(key) if key and isinstance(item, dict) else None
            yield from leaves(item, f"{path}[{at if label is None else label}]")
    elif isinstance(value, list):
        yield path, tuple(value)
    else:
        yield path, value


def _join(path: str, name: str) -> str:
    if "." in name or "/" in name:
        return f"{path}[{name}]"
    return f"{path}.{name}" if path else name


class Trace:
    """The layer of every leaf of one component, kept up as the component is built."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {}
        self._layers: dict[str, Any] = {}
        self._removed: dict[str, str] = {}

    def merged(self, layer: str, overlay: Any, after: Any, at: str = "") -> None:
        """`overlay` was merged in and gave `after`."""
        self.changed(layer, after, at)
        for path, value in leaves(overlay, at):
            if path in self._values and self._values[path] == value:
                self._layers[path] = [layer] * len(value) if isinstance(value, tuple) else layer

    def changed(self, layer: str, after: Any, at: str = "") -> None:
        """A step of `layer` left `after` at the path `at`: what differs is the layer's."""
        new = dict(leaves(after, at)) if after is not None else {}
        for path in [p for p in self._values if _is_under(p, at) and p not in new]:
            del self._values[path], self._layers[path]
            self._removed[path] = layer
        for path, value in new.items():
            old = self._values.get(path, _MISSING)
            if old == value:
                continue
            if isinstance(value, tuple):
                self._layers[path] = self._align(path, old, value, layer)
            else:
                self._layers[path] = layer
            self._values[path] = value
            self._removed.pop(path, None)

    def _align(self, path: str, old: Any, new: tuple[Any, ...], layer: str) -> list[str]:
        """Layers word by word: words that stayed keep theirs."""
        layers = [layer] * len(new)
        if isinstance(old, tuple):
            before = self._layers[path]
            for a, b, size in SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks():
                layers[b : b + size] = before[a : a + size]
        return layers

    def claimed(self, layer: str, path: str, place: int) -> None:
        """One word of a list is the layer's, whoever else had the same."""
        layers = self._layers.get(path)
        if isinstance(layers, list) and place < len(layers):
            layers[place] = layer

    def filled(self, after: Any) -> None:
        """Placeholders were filled: values changed where they stand, and their layers stay."""
        for path, value in leaves(after):
            if path in self._values:
                self._values[path] = value

    def folded(self, part: str, after: Any) -> None:
        """The component's own pod fields were laid under `part`: those leaves keep their layer."""
        for path, value in leaves(after, part):
            if path not in self._values:
                origin = path.removeprefix(part + ".")
                if self._values.get(origin, _MISSING) == value:
                    self._values[path], self._layers[path] = value, self._layers[origin]

    def moved(self, source: str, target: str) -> None:
        """What stood under `source` now stands under `target`."""
        for path in [p for p in self._removed if _is_under(p, source)]:
            self._removed[target + path[len(source) :]] = self._removed.pop(path)
        for path in [p for p in self._values if _is_under(p, source)]:
            new = target + path[len(source) :]
            value, layer = self._values.pop(path), self._layers.pop(path)
            if new not in self._values:  # what stands there is an overlay, and wins
                self._values[new], self._layers[new] = value, layer

    def take(self, part: str, fields: frozenset[str]) -> Trace:
        """Split off the leaves of one pod: those under `part`, or those of the fields named."""
        taken = Trace()
        taken._removed = {
            path.removeprefix(f"{part}."): layer for path, layer in self._removed.items()
        }
        for path in list(self._values):
            if part:
                if not _is_under(path, part):
                    continue
                new = path[len(part) + 1 :]
            elif re.split(r"[.\[]", path, maxsplit=1)[0] in fields:
                new = path
            else:
                continue
            taken._values[new] = self._values.pop(path)
            taken._layers[new] = self._layers.pop(path)
        return taken

    def removed(self) -> dict[str, str]:
        """Path → layer of the leaves that were there and that a layer removed."""
        return {path: layer for path, layer in self._removed.items() if path not in self._values}

    def result(self) -> dict[str, tuple[Any, str]]:
        """Path → (value, layer), sorted; words of a plain list one by one (`args[3]`)."""
        flat: dict[str, tuple[Any, str]] = {}
        for path in sorted(self._values):
            value, layer = self._values[path], self._layers[path]
            if isinstance(value, tuple):
                pairs = zip(value, layer, strict=True)
                flat.update({f"{path}[{at}]": pair for at, pair in enumerate(pairs)})
            else:
                flat[path] = (value, layer)
        return flat


_MISSING: Final = object()


def _is_under(path: str, at: str) -> bool:
    return not at or path == at or path.startswith((at + ".", at + "["))
