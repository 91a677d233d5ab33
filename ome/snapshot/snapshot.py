"""The view of the world that the core plans from: everything a plan depends on, and nothing live.

Same snapshot, same plan, byte for byte, on a laptop and in a cluster. Objects are never changed once
they are in; a snapshot with other contents is another snapshot.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import Final, TypeVar

from ome.api import (
    AcceleratorClass,
    ApiObject,
    BaseModel,
    ClusterBaseModel,
    ClusterServingRuntime,
    InferenceService,
    ObjectRef,
    Problem,
    ServingRuntime,
)
from ome.merging.directives import own_spec
from ome.scoring.index import RuntimeIndex
from ome.snapshot.config import Config
from ome.snapshot.filling import Filling, Presets, no_presets
from ome.snapshot.lineage import Lineage, Runtime
from ome.snapshot.revision import Revision, RevisionOf

__all__ = [
    "DEFAULT_OME_NAMESPACE",
    "EVERY_API",
    "ApiKind",
    "Kept",
    "PluginVersion",
    "Snapshot",
]

DEFAULT_OME_NAMESPACE: Final = "ome"


@dataclass(frozen=True, slots=True, order=True)
class ApiKind:
    """A kind that the API server serves (or not), such as `monitoring.coreos.com/v1` `PodMonitor`."""

    api_version: str
    kind: str


# What rendering may need beyond the kinds that every cluster has.
EVERY_API: Final = frozenset(
    {
        ApiKind("monitoring.coreos.com/v1", "PodMonitor"),
        ApiKind("keda.sh/v1alpha1", "ScaledObject"),
    }
)


@dataclass(frozen=True, slots=True, order=True)
class PluginVersion:
    """An engine plugin that takes part in planning, with the version of its distribution."""

    name: str
    version: str


_Object = TypeVar("_Object", bound=ApiObject)
_Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Kept:
    """What is derived from a snapshot's contents, where somebody keeps it up while they change: who
    inherits from whom, the runtimes compiled for selection, and the revisions by runtime."""

    lineage: Lineage
    runtime_index: RuntimeIndex | None = None
    revisions: Mapping[RevisionOf, list[Revision]] | None = None


@dataclass(frozen=True)
class Snapshot:
    """Objects with their indexes, and the settings of one moment.

    Build it with `Snapshot.of`. `now` is the clock, `served` the optional API kinds that exist,
    `plugins` the engines with their versions, `live` what identifies the state of the workloads that
    run (a Deployment's generation, say), by object; `keeps_choices` whether runtimes that were chosen
    before and stand in services' status are kept, `stored` everything that was read of ControllerRevisions,
    and `revisions` the last of each name, `fillings` what presets made of the runtimes that name one. Those
    runtimes are in it as they are filled.
    """

    now: datetime
    config: Config
    served: frozenset[ApiKind]
    plugins: tuple[PluginVersion, ...]
    ome_namespace: str
    live: Mapping[ObjectRef, str]
    keeps_choices: bool
    stored: tuple[Revision, ...]
    revisions: Mapping[str, Revision]
    fillings: Mapping[ObjectRef, Filling]
    kept: Kept | None = field(repr=False)
    _by_kind: Mapping[type[ApiObject], Mapping[_Key, ApiObject]] = field(repr=False)

    @classmethod
    def of(
        cls,
        objects: Iterable[ApiObject] = (),
        *,
        now: datetime | None = None,
        config: Config | None = None,
        served: frozenset[ApiKind] = EVERY_API,
        plugins: Iterable[PluginVersion] = (),
        ome_namespace: str = DEFAULT_OME_NAMESPACE,
        live: Mapping[ObjectRef, str] | None = None,
        keeps_choices: bool = True,
        revisions: Iterable[Revision] = (),
        presets: Presets = no_presets,
        kept: Kept | None = None,
    ) -> Snapshot:
        """A snapshot of these objects; of two with the same kind, namespace and name the later stays.

        `presets` fills the runtimes that name a preset. What is `kept` has to be of the same contents, and
        to know the same presets.
        """
        stored = tuple(revisions)
        by_kind: dict[type[ApiObject], dict[_Key, ApiObject]] = {}
        for item in objects:
            by_kind.setdefault(type(item), {})[item.namespace, item.name] = item
        fillings: dict[ObjectRef, Filling] = {}
        for kind in (ServingRuntime, ClusterServingRuntime):
            for key, item in by_kind.get(kind, {}).items():
                if (filling := presets(item)) is not None:  # type: ignore[arg-type]
                    fillings[item.ref] = filling
                    by_kind[kind][key] = filling.runtime
        return cls(
            now=now or datetime.fromtimestamp(0, UTC),
            config=config or Config(),
            served=served,
            plugins=tuple(sorted(plugins)),
            ome_namespace=ome_namespace,
            live=live or {},
            keeps_choices=keeps_choices,
            stored=stored,
            revisions={each.name: each for each in stored},
            fillings=fillings,
            kept=kept,
            _by_kind=by_kind,
        )

    @classmethod
    def over(
        cls,
        contents: Mapping[type[ApiObject], Mapping[_Key, ApiObject]],
        kept: Kept,
        *,
        now: datetime,
        config: Config,
        served: frozenset[ApiKind],
        plugins: tuple[PluginVersion, ...],
        ome_namespace: str,
        live: Mapping[ObjectRef, str],
        revisions: Mapping[str, Revision],
    ) -> Snapshot:
        """A snapshot of what somebody keeps up, by kind, then by namespace and name. It costs nothing to
        make, and is true until the contents change. Runtimes are taken as they are: in a cluster presets
        are applied when a runtime is admitted."""
        return cls(
            now=now,
            config=config,
            served=served,
            plugins=plugins,
            ome_namespace=ome_namespace,
            live=live,
            keeps_choices=True,
            stored=(),
            revisions=revisions,
            fillings={},
            kept=kept,
            _by_kind=contents,
        )

    def _get(self, kind: type[_Object], namespace: str, name: str) -> _Object | None:
        return self._by_kind.get(kind, {}).get((namespace, name))  # type: ignore[return-value]

    def service(self, namespace: str, name: str) -> InferenceService | None:
        """The InferenceService, or None."""
        return self._get(InferenceService, namespace, name)

    def services(self) -> Iterator[InferenceService]:
        """Every InferenceService, by namespace and name."""
        found = self._by_kind.get(InferenceService, {})
        for key in sorted(found):
            item = found[key]
            assert isinstance(item, InferenceService)
            yield item

    def of_kinds(self, *kinds: type[ApiObject]) -> list[ApiObject]:
        """Every object of the kinds, by namespace and name."""
        found = [item for kind in kinds for item in self._by_kind.get(kind, {}).values()]
        return sorted(found, key=lambda item: (item.namespace, item.name, item.KIND))

    def runtime(self, namespace: str, name: str) -> ServingRuntime | None:
        """The ServingRuntime, or None."""
        return self._get(ServingRuntime, namespace, name)

    def cluster_runtime(self, name: str) -> ClusterServingRuntime | None:
        """The ClusterServingRuntime, or None."""
        return self._get(ClusterServingRuntime, "", name)

    @property
    def preset_problems(self) -> list[Problem]:
        """Why runtimes can't have the preset that they name, by runtime."""
        found = [
            each.problem for _, each in sorted(self.fillings.items(), key=lambda item: item[0])
        ]
        return [problem for problem in found if problem is not None]

    def runtime_of(self, ref: ObjectRef) -> Runtime | None:
        """The runtime of either kind that a reference names, or None."""
        if ref.kind == ClusterServingRuntime.KIND:
            return self.cluster_runtime(ref.name)
        return self.runtime(ref.namespace, ref.name)

    @cached_property
    def runtime_index(self) -> RuntimeIndex:
        """Every runtime, compiled for selection; built when a service first needs it."""
        if self.kept is not None and self.kept.runtime_index is not None:
            return self.kept.runtime_index
        kinds = (ServingRuntime, ClusterServingRuntime)
        return RuntimeIndex(
            (item.ref, own_spec(item))
            for kind in kinds
            for item in self._by_kind.get(kind, {}).values()
        )

    @cached_property
    def lineage(self) -> Lineage:
        """Who inherits from whom; chains are followed when a service first needs them."""
        if self.kept is not None:
            return self.kept.lineage
        kinds = (ServingRuntime, ClusterServingRuntime)
        found = (item for kind in kinds for item in self._by_kind.get(kind, {}).values())
        return Lineage(found, lambda runtime: self.fillings.get(runtime.ref))  # type: ignore[arg-type]

    def model(self, namespace: str, name: str) -> BaseModel | None:
        """The BaseModel, or None."""
        return self._get(BaseModel, namespace, name)

    def cluster_model(self, name: str) -> ClusterBaseModel | None:
        """The ClusterBaseModel, or None."""
        return self._get(ClusterBaseModel, "", name)

    def accelerator_class(self, name: str) -> AcceleratorClass | None:
        """The AcceleratorClass, or None."""
        return self._get(AcceleratorClass, "", name)

    def revision(self, name: str) -> Revision | None:
        """The stored revision of a name that is a runtime's, readable or not, or None."""
        found = self.revisions.get(name)
        return found if found is not None and found.runtime else None

    def revisions_of(self, runtime: ObjectRef) -> list[Revision]:
        """The stored revisions of one runtime, by kind, namespace and name; only usable ones."""
        key = (runtime.kind, runtime.namespace, runtime.name)
        return [each for each in self._revisions_by_runtime.get(key, ()) if each.is_usable]

    @cached_property
    def _revisions_by_runtime(self) -> Mapping[RevisionOf, list[Revision]]:
        if self.kept is not None and self.kept.revisions is not None:
            return self.kept.revisions
        found: dict[RevisionOf, list[Revision]] = {}
        for each in self.revisions.values():
            found.setdefault(each.of, []).append(each)
        return found

    def is_served(self, api_version: str, kind: str) -> bool:
        """Whether the API server has an optional kind."""
        return ApiKind(api_version, kind) in self.served
