"""The compiled index: choosing a runtime looks only at the runtimes of the model's bucket.

A bucket holds the runtimes of one scope that have an entry for one format, framework and
architecture. What the checks need is read once, when a runtime comes or changes; a choice parses
nothing. The rules are those of `verdict`, and a property test holds the two together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from ome.api import ObjectRef
from ome.scoring.entries import full_score
from ome.scoring.matching import pipeline_mismatch
from ome.scoring.ranking import rank
from ome.scoring.sizes import parse_size
from ome.scoring.verdict import Request, Verdict, declared_mode
from ome.scoring.versions import Version, parse_version, parsed_match

__all__ = ["RuntimeIndex"]

Json = Mapping[str, Any]
_Names = tuple[str, str]
_ZERO: Final = Decimal(0)


@dataclass(frozen=True, slots=True)
class _Part:
    """A format or framework of an entry or a model: whether a version is set, parsed, and how it
    compares."""

    has_version: bool
    version: Version | None
    operator: str | None

    @classmethod
    def of(cls, part: Json | None) -> _Part:
        text = (part or {}).get("version")
        parsed = None if text is None else parse_version(text)
        return cls(text is not None, parsed, (part or {}).get("operator"))

    def matches(self, model: _Part) -> bool:
        """Set on both sides it compares; set on one it is a mismatch."""
        if self.has_version and model.has_version:
            return parsed_match(self.version, self.operator, model.version)
        return self.has_version is model.has_version

    def agrees(self, model: _Part) -> bool:
        """The same for the score, where a version set on one side passes."""
        both = self.has_version and model.has_version
        return not both or parsed_match(self.version, self.operator, model.version)


@dataclass(frozen=True, slots=True)
class _Entry:
    """One entry; `at` is its place in the list."""

    at: int
    format: _Part
    framework: _Part
    architecture: str | None
    quantization: str | None
    pipeline: Json | None
    score: int
    counts: bool


@dataclass(frozen=True, slots=True)
class _Compiled:
    """What choosing needs of one runtime."""

    ref: ObjectRef
    classes: frozenset[str]
    modes: Mapping[str, str]
    least: Decimal | None
    most: Decimal | None
    entries: Mapping[_Names, tuple[_Entry, ...]]


@dataclass(frozen=True, slots=True)
class _Model:
    """What choosing needs of a model."""

    names: _Names
    format: _Part
    framework: _Part
    architecture: str | None
    quantization: str | None
    pipeline: Json | None
    size: Decimal | None


_NONE: Final[Mapping[str, str]] = {}
_Bucket = tuple[str, str, str, str | None]


class RuntimeIndex:
    """The runtimes of a cluster, by what they support. Kept up one runtime at a time."""

    def __init__(self, runtimes: Iterable[tuple[ObjectRef, Json]] = ()) -> None:
        self._buckets: dict[_Bucket, dict[ObjectRef, _Compiled]] = {}
        self._keys: dict[ObjectRef, tuple[_Bucket, ...]] = {}
        self._scopes: dict[str, set[ObjectRef]] = {}
        for ref, spec in runtimes:
            self.put(ref, spec)

    def __len__(self) -> int:
        return len(self._keys)

    def put(self, ref: ObjectRef, spec: Json) -> None:
        """Take in a runtime, or what became of it."""
        self.remove(ref)
        keys: tuple[_Bucket, ...] = ()
        compiled = _compile(ref, spec)
        if compiled is not None:
            architectures = [
                (ref.namespace, *names, entry.architecture)
                for names, entries in compiled.entries.items()
                for entry in entries
            ]
            keys = tuple(dict.fromkeys(architectures))
            for key in keys:
                self._buckets.setdefault(key, {})[ref] = compiled
        self._keys[ref] = keys
        self._scopes.setdefault(ref.namespace, set()).add(ref)

    def remove(self, ref: ObjectRef) -> None:
        """Forget a runtime; one that isn't there is no error."""
        for key in self._keys.pop(ref, ()):
            bucket = self._buckets[key]
            del bucket[ref]
            if not bucket:
                del self._buckets[key]
        scope = self._scopes.get(ref.namespace)
        if scope is not None:
            scope.discard(ref)
            if not scope:
                del self._scopes[ref.namespace]

    def visible(self, namespace: str) -> list[ObjectRef]:
        """Every runtime that a service of a namespace can see: its own by name, then the cluster's."""
        local = self._scopes.get(namespace, set()) if namespace else set()
        return [*sorted(local), *sorted(self._scopes.get("", set()))]

    def choose(self, namespace: str, model: Json, request: Request) -> list[Verdict]:
        """The runtimes that automatic selection can choose for a model, best first.

        Looks only at the model's bucket in the namespace and at cluster scope. A sharded model and
        one without a format or a framework have none.
        """
        wanted = _read_model(model)
        if wanted is None:
            return []
        return rank(self._verdicts(namespace, wanted, request))

    def _verdicts(self, namespace: str, model: _Model, request: Request) -> Iterator[Verdict]:
        for scope in {namespace, ""}:
            bucket = self._buckets.get((scope, *model.names, model.architecture))
            for runtime in bucket.values() if bucket else ():
                verdict = _judge(runtime, model, request)
                if verdict is not None:
                    yield verdict


def _compile(ref: ObjectRef, spec: Json) -> _Compiled | None:
    """None for a runtime that can't be chosen for any model: disabled, or with no entry to choose by."""
    raw = spec.get("supportedModelFormats") or ()
    if spec.get("disabled") is True or not any(each.get("autoSelect") is True for each in raw):
        return None
    entries: dict[_Names, list[_Entry]] = {}
    for at, each in enumerate(raw):
        names = _names(each)
        if names is not None:
            entries.setdefault(names, []).append(_compile_entry(at, each))
    sizes = spec.get("modelSizeRange") or {}
    least, most = sizes.get("min"), sizes.get("max")
    modes = {
        component: mode
        for component in ("engine", "decoder")
        if (mode := declared_mode((spec.get(f"{component}Config") or {}).get("annotations")))
    }
    listed = (spec.get("acceleratorRequirements") or {}).get("acceleratorClasses") or ()
    return _Compiled(
        ref=ref,
        classes=frozenset(listed),
        modes=modes or _NONE,
        least=None if least is None else parse_size(least),
        most=None if most is None else parse_size(most),
        entries={names: tuple(found) for names, found in entries.items()},
    )


def _compile_entry(at: int, entry: Json) -> _Entry:
    return _Entry(
        at=at,
        format=_Part.of(entry.get("modelFormat")),
        framework=_Part.of(entry.get("modelFramework")),
        architecture=entry.get("modelArchitecture"),
        quantization=entry.get("quantization"),
        pipeline=entry.get("diffusionPipeline"),
        score=full_score(entry),
        counts=entry.get("autoSelect") is not False,
    )


def _names(either: Json) -> _Names | None:
    """The format's and the framework's name of an entry or a model; None when one is missing."""
    model_format = (either.get("modelFormat") or {}).get("name")
    framework = (either.get("modelFramework") or {}).get("name")
    return (model_format, framework) if model_format and framework else None


def _read_model(model: Json) -> _Model | None:
    names = _names(model)
    if names is None or model.get("distribution") == "Sharded":
        return None
    size = model.get("modelParameterSize")
    return _Model(
        names=names,
        format=_Part.of(model.get("modelFormat")),
        framework=_Part.of(model.get("modelFramework")),
        architecture=model.get("modelArchitecture"),
        quantization=model.get("quantization"),
        pipeline=model.get("diffusionPipeline"),
        size=parse_size(size) if size else None,
    )


def _judge(runtime: _Compiled, model: _Model, request: Request) -> Verdict | None:
    """The verdict on a runtime of the model's bucket; None when it can't be chosen."""
    if request.classes and not request.classes <= runtime.classes:
        return None
    if request.modes and any(
        runtime.modes.get(component, mode) != mode for component, mode in request.modes.items()
    ):
        return None
    distance = _ZERO
    size, least, most = model.size, runtime.least, runtime.most
    if size is not None:
        if least is not None:
            if size < least:
                return None
            distance = size - least
        if most is not None:
            if size > most:
                return None
            distance += most - size
    entries = runtime.entries[model.names]
    first = next((entry.at for entry in entries if _entry_matches(entry, model)), None)
    if first is None:
        return None
    score = max(
        (
            entry.score
            for entry in entries
            if entry.counts
            and entry.format.agrees(model.format)
            and entry.framework.agrees(model.framework)
        ),
        default=0,
    )
    if score <= 0:
        return None
    return Verdict(runtime.ref, None, first, score, distance, eligible=True)


def _entry_matches(entry: _Entry, model: _Model) -> bool:
    return (
        entry.architecture == model.architecture
        and entry.quantization == model.quantization
        and entry.format.matches(model.format)
        and entry.framework.matches(model.framework)
        and (entry.pipeline is None or pipeline_mismatch(entry.pipeline, model.pipeline) is None)
    )
