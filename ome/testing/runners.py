"""The containers of the public catalog's runtimes, as tests of engine plugins want them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from ome.engines import Container, Detection, PodView
from ome.testing.catalog import catalog_files, catalog_path

__all__ = ["Runner", "catalog_runners"]

Json = dict[str, Any]


@dataclass(frozen=True)
class Runner:
    """A runner of a runtime, with the rest of its pod."""

    runtime: str
    component: str
    container: Json
    pod: Json

    @property
    def seen(self) -> Container:
        """What `ome_detect` gets."""
        command, args = (tuple(self.container.get(name) or ()) for name in ("command", "args"))
        return Container(self.container["image"], command, args)

    @property
    def accelerators(self) -> int:
        """The limit of GPUs."""
        limits = (self.container.get("resources") or {}).get("limits") or {}
        return int(limits.get("nvidia.com/gpu") or 0)

    def view(self, detection: Detection) -> PodView:
        """What the other hooks get."""
        return PodView(self.component, self.container, self.pod, self.accelerators, detection)


def catalog_runners() -> list[Runner]:
    """Every runner of the catalog's runtimes: of components, leaders and workers."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    documents = [yaml.load(text, Loader=loader) for _, text in catalog_files(catalog_path())]
    runtimes = [one for one in documents if one["kind"] == "ClusterServingRuntime"]
    return [runner for runtime in runtimes for runner in _runners_of(runtime)]


def _runners_of(runtime: Json) -> Iterator[Runner]:
    for component in ("engine", "decoder", "router"):
        config = runtime["spec"].get(f"{component}Config") or {}
        for part in (config, config.get("leader") or {}, config.get("worker") or {}):
            if part.get("runner"):
                pod = {**part, "containers": [part["runner"]]}
                yield Runner(runtime["metadata"]["name"], component, part["runner"], pod)
