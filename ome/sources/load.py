"""From documents to what a snapshot holds: the files are the cluster.

What the API server would refuse is refused here, with its place; what it would drop silently is
warned about. Of two objects with one name the later stays, as `kubectl apply` would have it.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ome.api import (
    API_VERSION,
    GROUP,
    KINDS,
    ApiObject,
    InvalidObject,
    ObjectRef,
    Problem,
    parse,
    unknown_fields,
)
from ome.engines.engines import copy_json
from ome.snapshot import (
    CONFIG_NAME,
    DEFAULT_OME_NAMESPACE,
    Config,
    InvalidConfig,
    Revision,
    parse_config,
    read_revision,
)
from ome.sources.documents import Document, UnreadableInput, read_documents
from ome.sources.presets import InstalledPresets

__all__ = ["Loaded", "load"]

# Kinds of the group that rendering doesn't read.
_OTHER_KINDS: Final = frozenset(
    {
        "AcceleratorQuota",
        "AutoscalerPolicy",
        "BenchmarkJob",
        "FineTunedWeight",
        "InferenceReplica",
        "RolloutPolicy",
        "TrafficMap",
        "WorkloadCluster",
    }
)
_STEP: Final = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")


@dataclass(frozen=True, slots=True)
class Loaded:
    """What was read: objects, the configuration, what is worth a warning, and where objects stand."""

    objects: tuple[ApiObject, ...]
    config: Config
    warnings: tuple[Problem, ...]
    places: Mapping[ObjectRef, tuple[Document, tuple[str | int, ...]]] = field(
        default_factory=dict, repr=False
    )
    revisions: tuple[Revision, ...] = ()

    def line_of(self, ref: ObjectRef, path: str) -> tuple[str, int] | None:
        """The file and the line of an object's field, or of what of it stands in the text."""
        if ref not in self.places:
            return None
        document, start = self.places[ref]
        return document.file, document.line_of((*start, *_steps(path)))


def load(
    files: Iterable[tuple[str, bytes]],
    *,
    namespace: str = "default",
    ome_namespace: str = DEFAULT_OME_NAMESPACE,
    presets: InstalledPresets | None = None,
    keep_places: bool = False,
) -> Loaded:
    """Read every document of every file.

    `namespace` is for objects that name none. A runtime may leave required fields to its preset, where
    `presets` has it; nothing else is filled here. With `keep_places` the result can tell the line of
    every field, which keeps the parsed texts in memory. Raises UnreadableInput with every fault found, each
    with file, document number and line.
    """
    loader = _Loader(namespace, ome_namespace, presets, keep_places)
    for name, data in files:
        try:
            for document in read_documents(data, name):
                loader.take(document)
        except UnreadableInput as error:
            loader.faults.extend(error.problems)
    if loader.faults:
        raise UnreadableInput(*loader.faults)
    return loader.loaded()


@dataclass
class _Loader:
    namespace: str
    ome_namespace: str
    presets: InstalledPresets | None
    keep_places: bool
    faults: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    config: Config = field(default_factory=Config)
    skipped: Counter[str] = field(default_factory=Counter)
    objects: dict[ObjectRef, tuple[ApiObject, str]] = field(default_factory=dict)
    places: dict[ObjectRef, tuple[Document, tuple[str | int, ...]]] = field(default_factory=dict)
    revisions: list[Revision] = field(default_factory=list)

    def loaded(self) -> Loaded:
        """What was read, when nothing was at fault."""
        if self.skipped:
            kinds = ", ".join(f"{kind} ({count})" for kind, count in sorted(self.skipped.items()))
            text = f"skipped objects that rendering doesn't read: {kinds}"
            self.warnings.append(Problem("ObjectsSkipped", text))
        objects = tuple(item for item, _ in self.objects.values())
        return Loaded(
            objects, self.config, tuple(self.warnings), self.places, tuple(self.revisions)
        )

    def take(self, document: Document) -> None:
        """Read one document: an object, or a list of them."""
        for raw, path in _flatten(document.value, ()):
            where = document.where_of(path)
            if items := [f"item {step + 1}" for step in path if isinstance(step, int)]:
                where = f"{where}, {', '.join(items)}"
            if not isinstance(raw, dict):
                text = "a document must be an object with apiVersion and kind"
                self.faults.append(Problem("NotAnObject", text, where=where))
                continue
            self._take_object(raw, path, document, where)

    def _take_object(
        self, raw: dict[str, Any], path: tuple[str | int, ...], document: Document, where: str
    ) -> None:
        api_version, kind = raw.get("apiVersion"), raw.get("kind")
        if not (isinstance(api_version, str) and api_version and isinstance(kind, str) and kind):
            missing = (
                "apiVersion" if not isinstance(api_version, str) or not api_version else "kind"
            )
            text = f"{missing} is missing or no string"
            self.faults.append(Problem("NotAnObject", text, where=where))
        elif kind == "ConfigMap" and api_version == "v1":
            self._take_config(raw, where)
        elif kind == "ControllerRevision" and api_version == "apps/v1":
            self._take_revision(raw, where)
        elif api_version == API_VERSION and kind in KINDS:
            self._take_known(raw, path, document, where)
        elif api_version.partition("/")[0] == GROUP and kind not in _OTHER_KINDS:
            self.faults.append(_wrong_kind(api_version, kind, where))
        else:
            self.skipped[f"{kind} of {api_version}"] += 1

    def _take_config(self, raw: dict[str, Any], where: str) -> None:
        metadata = raw.get("metadata")
        if not isinstance(metadata, dict) or metadata.get("name") != CONFIG_NAME:
            self.skipped["ConfigMap of v1"] += 1
            return
        namespace = metadata.get("namespace") or self.namespace
        if not isinstance(namespace, str):
            text = "metadata.namespace must be a string"
            self.faults.append(Problem("NotAnObject", text, where=where))
            return
        if namespace != self.ome_namespace:
            text = f"it is in namespace {namespace}, not {self.ome_namespace}: ignored"
            ref = ObjectRef("ConfigMap", namespace, CONFIG_NAME)
            self.warnings.append(Problem("ConfigIgnored", text, ref, where=where))
            return
        try:
            self.config = parse_config(raw)
        except InvalidConfig as error:
            self.faults.extend(replace(problem, where=where) for problem in error.problems)

    def _take_revision(self, raw: dict[str, Any], where: str) -> None:
        """OME's own are in its namespace; those of other owners are none of its business."""
        found = read_revision(raw)
        if found is None or not found.runtime:
            self.skipped["ControllerRevision of apps/v1"] += 1
        if found is None:
            return
        namespace = raw["metadata"].get("namespace") or self.ome_namespace
        if namespace == self.ome_namespace:
            self.revisions.append(found)
        elif found.runtime:
            text = f"it is in namespace {namespace}, not {self.ome_namespace}: ignored"
            ref = ObjectRef("ControllerRevision", str(namespace), found.name)
            self.warnings.append(Problem("RevisionIgnored", text, ref, where=where))

    def _take_known(
        self, raw: dict[str, Any], path: tuple[str | int, ...], document: Document, where: str
    ) -> None:
        try:
            item = self._parsed(self._placed(raw))
        except InvalidObject as error:
            for problem in error.problems:
                at = document.where_of((*path, *_steps(problem.path)))
                self.faults.append(replace(problem, where=at))
            return
        unknown = unknown_fields(item)
        for problem in unknown:
            at = document.where_of((*path, *_steps(problem.path)))
            self.warnings.append(replace(problem, where=at))
        if unknown:
            item = parse(_without(item.raw, [problem.path for problem in unknown]))
        if (earlier := self.objects.pop(item.ref, None)) is not None:
            text = f"it stands twice: this one replaces the one of {earlier[1]}"
            self.warnings.append(Problem("DuplicateObject", text, item.ref, where=where))
        self.objects[item.ref] = item, where
        if self.keep_places:
            self.places[item.ref] = document, path

    def _parsed(self, raw: dict[str, Any]) -> ApiObject:
        """The object, with required fields that its preset gives it. Raises InvalidObject."""
        try:
            return parse(raw)
        except InvalidObject as error:
            if self.presets is None or not raw["kind"].endswith("ServingRuntime"):
                raise
            completed = self.presets.complete(raw, error.problems)
            if completed is raw:
                raise
        return parse(completed)

    def _placed(self, raw: dict[str, Any]) -> dict[str, Any]:
        """The object in its namespace: the default one, or none for cluster-scoped kinds."""
        metadata = raw.get("metadata")
        if not isinstance(metadata, dict):
            return raw
        namespaced = KINDS[raw["kind"]].NAMESPACED
        if namespaced and not metadata.get("namespace"):
            return {**raw, "metadata": {**metadata, "namespace": self.namespace}}
        if not namespaced and "namespace" in metadata:
            kept = {key: value for key, value in metadata.items() if key != "namespace"}
            return {**raw, "metadata": kept}
        return raw


def _without(raw: dict[str, Any], paths: Iterable[str]) -> dict[str, Any]:
    """The object without some fields, as the API server stores it."""
    pruned: dict[str, Any] = copy_json(raw)
    for path in paths:
        *steps, last = _steps(path)
        holder: Any = pruned
        for step in steps:
            holder = holder[step]
        del holder[last]
    return pruned


def _flatten(
    value: Any, path: tuple[str | int, ...]
) -> Iterator[tuple[Any, tuple[str | int, ...]]]:
    """The objects of a document: itself, or the items of a `List` or a typed list."""
    kind = value.get("kind") if isinstance(value, dict) else None
    items = value.get("items") if isinstance(value, dict) else None
    if not (isinstance(kind, str) and kind.endswith("List") and isinstance(items, list)):
        yield value, path
        return
    defaults = {"apiVersion": value.get("apiVersion"), "kind": kind.removesuffix("List")}
    for at, item in enumerate(items):
        if isinstance(item, dict) and kind != "List":
            item = {**defaults, **item}
        yield from _flatten(item, (*path, "items", at))


def _wrong_kind(api_version: str, kind: str, where: str) -> Problem:
    if kind in KINDS:
        text = f"{kind} has apiVersion {api_version}, which isn't served"
        return Problem("WrongApiVersion", text, where=where, fix=f"use {API_VERSION}")
    close = difflib.get_close_matches(kind, [*KINDS, *_OTHER_KINDS], n=1)
    fix = f"did you mean {close[0]}?" if close else f"OME's kinds are {', '.join(sorted(KINDS))}"
    return Problem(
        "UnknownKind", f'there is no kind "{kind}" in {api_version}', where=where, fix=fix
    )


def _steps(path: str) -> Iterator[str | int]:
    for bracketed, plain in _STEP.findall(path):
        step = bracketed or plain
        yield int(step) if bracketed.isdecimal() else step
