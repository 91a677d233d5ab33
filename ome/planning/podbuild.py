"""The steps from a component's merged settings to its finished, checked pod spec."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ome.api import Problem
from ome.api.argspatch import ARGS_PATCH
from ome.engines.engines import Recognised
from ome.engines.types import Container
from ome.merging.container import place_runner, pod_fields_of
from ome.merging.injection import set_env
from ome.merging.placeholders import MalformedPlaceholder, expand
from ome.planning.accelerators import pick_accelerator
from ome.planning.advice import advise, view_of
from ome.planning.arguments import edit_arguments, edit_containers
from ome.planning.context import ComponentRefused, ServiceContext
from ome.planning.model import ModelMount, model_mount, overlay_mounts
from ome.planning.names import component_name
from ome.planning.pod import (
    ENGINE_VERSION,
    PROBE_PROFILE,
    select_nodes,
    with_affinity,
    with_defaults,
    with_volumes,
)
from ome.planning.podchecks import check_pod
from ome.planning.runner import OME, RunnerEdits, edit_runner
from ome.planning.switches import name_layers
from ome.planning.trace import Trace

__all__ = ["PodBuild"]

Json = Mapping[str, Any]


class PodBuild:
    """The pipeline of one component's pod.

    `part` is "leader" when the pod is that of a leader, else ""; `trace` holds the pod's leaves when
    somebody asks where they come from.
    """

    def __init__(
        self, context: ServiceContext, name: str, settings: Json, part: str, trace: Trace | None
    ) -> None:
        self._context, self._name, self._settings = context, name, settings
        self._part, self._trace = part, trace
        self._version = ""
        self._seen: Container | None = None
        self._recognised: Recognised | None = None
        self._own: Json = context.declared(name) or {}
        self._is_router = name == "router"
        self._model: ModelMount | None = None
        self._overlays: Mapping[str, ModelMount] = {}
        self._accelerator = None if self._is_router else pick_accelerator(context, name)
        model = context.resolution.model
        if model is not None and not self._is_router:
            self._model = model_mount(model, context.service.namespace)
            if self._model.path is None:
                context.warn(
                    "ModelPathUnknown",
                    f"{model.ref} doesn't say where its weights are: no volume and no MODEL_PATH",
                    path="spec.model.name",
                    fix="set the model's storage.path",
                )
            self._overlays = overlay_mounts(context)

    def run(self, annotations: Mapping[str, str]) -> dict[str, Any]:
        """The pod spec. Raises ComponentRefused when Kubernetes wouldn't take it."""
        self._version = annotations.get(ENGINE_VERSION, "")
        level: Json = self._settings[self._part] if self._part else self._settings
        pod, serving = self._place(level)
        pod = self._expand_placeholders(pod, serving)
        if self._is_router:
            name = component_name(self._context.service.name, self._name)
            pod = {**pod, "serviceAccountName": name}
        else:
            pod = self._add_model(pod)
        self._note(OME, pod)
        self._check_profile(annotations.get(PROBE_PROFILE))
        grace = self._context.snapshot.config.termination_grace_seconds
        pod = with_defaults(pod, grace, probes_by_profile=bool(annotations.get(PROBE_PROFILE)))
        self._note("default", pod)
        if found := check_pod(pod):
            if self._trace is not None:
                found = self._with_layers(found, self._trace)
            where = f"{self._name} pod: "
            raise ComponentRefused(tuple(replace(item, path=where + item.path) for item in found))
        seen = view_of(pod["containers"][serving], self._version)
        recognised = self._context.engines.recognise_edited(seen, self._seen, self._recognised)
        advise(self._context, self._name, pod, serving, self._accelerator, recognised)
        return pod

    def _with_layers(self, found: tuple[Problem, ...], trace: Trace) -> tuple[Problem, ...]:
        """Name the layers of a switch that nobody asked for."""
        own, ref = self._context.service.KIND, str(self._context.ref)
        leaves = {
            path: (value, ref if layer == own else layer)
            for path, (value, layer) in trace.result().items()
        }
        order = [*(str(each) for each, _ in self._context.resolution.layers), ref]
        return tuple(name_layers(each, leaves, order) for each in found)

    def _check_profile(self, name: str | None) -> None:
        """Probe profiles are applied to pods at their creation: say so, or that nobody knows it."""
        if not name:
            return
        text = f"unknown probe profile: {name}"
        if name in self._context.engines.profiles:
            text = f'probe profile "{name}" is applied when pods are created: it isn\'t shown here'
        path = f"{self._name}: metadata.annotations[{PROBE_PROFILE}]"
        self._context.warn("ProbeProfile", text, path=path)

    def _note(self, layer: str, value: Json, at: str = "") -> None:
        if self._trace is not None:
            self._trace.changed(layer, value, at)

    def _place(self, level: Json) -> tuple[dict[str, Any], int]:
        """The pod with its edited runner, and which of its containers serves."""
        pod = pod_fields_of(level)
        runner = level.get("runner")
        if isinstance(runner, dict):
            edited = self._edit_runner(runner)
            placed = place_runner(pod, edited)
            names = [item.get("name") for item in placed["containers"]]
            if self._trace is not None:
                self._trace.moved("runner", f"containers[{edited['name']}]")
                self._trace.changed("InferenceService", placed)
            serving = names.index(edited["name"])
            return edit_containers(self._context, self._name, placed, serving, self._trace), serving
        if pod.get("containers"):
            return edit_containers(self._context, self._name, pod, 0, self._trace), 0
        raise ComponentRefused.because(
            "NoContainer",
            "no containers found in pod spec and no runner spec provided",
            path=f"spec.{self._name}.runner",
            fix=f"give the runtime's {self._name}Config or the service's {self._name} a runner",
        )

    def _edit_runner(self, runner: dict[str, Any]) -> dict[str, Any]:
        recognise = self._context.engines.recognise
        if ARGS_PATCH in runner:
            dialect = recognise(view_of(runner, self._version)).dialect
            runner = edit_arguments(
                self._context, self._name, runner, dialect, self._trace, "runner"
            )
        if self._is_router:
            config = self._settings.get("config") or {}
            edited = set_env(runner, config) if config else runner
            self._recognise(edited)
            self._note(OME, edited, "runner")
            return edited
        worker = self._settings.get("worker")
        size = (worker.get("size") or 1) if isinstance(worker, dict) else 0
        edits = RunnerEdits(
            model=self._model,
            overlays=self._overlays,
            accelerator=self._accelerator,
            takes_class_resources=not self._sets_resources(),
            pods_per_replica=1 + size,
            accelerator_names=self._context.snapshot.config.accelerator_resources,
        )
        dialect = self._recognise(runner).dialect
        edited = runner
        missed: list[str] = []
        for layer, edited in edit_runner(runner, edits, dialect, missed):
            self._note(layer, edited, "runner")
        self._warn_missed(missed)
        return edited

    def _recognise(self, runner: Json) -> Recognised:
        """The engine of the runner, which services of one runtime share until placeholders are filled."""
        self._seen = view_of(runner, self._version)
        self._recognised = self._context.engines.recognise(self._seen)
        return self._recognised

    def _warn_missed(self, missed: list[str]) -> None:
        """Say which sizes of the class aren't applied, because flags are never added."""
        assert self._accelerator is not None or not missed
        for each in missed:
            name = self._accelerator.name if self._accelerator else ""
            self._context.warn(
                "ParallelismNotApplied",
                f"the {self._name} doesn't get the settings of class {name}: {each}",
                path=f"spec.{self._name}.runner.args",
                fix="write the flags in the runtime's args, as a list, for the class to set them",
            )

    def _sets_resources(self) -> bool:
        """Whether the service sets resources on its runner (or, with a leader, on the leader's)."""
        levels = [self._own, self._own.get(self._part) or {}] if self._part else [self._own]
        found = [(level.get("runner") or {}).get("resources") or {} for level in levels]
        return any(value for resources in found for value in resources.values())

    def _expand_placeholders(self, pod: dict[str, Any], serving: int) -> dict[str, Any]:
        containers = list(pod["containers"])
        where = f"{self._name} container {containers[serving].get('name')}"
        foreign: list[str] = []
        try:
            containers[serving] = expand(containers[serving], self._context.metadata, foreign)
        except MalformedPlaceholder as error:
            raise ComponentRefused.because(
                "PlaceholderMalformed", str(error), path=f"{where}: {error.path}", fix=error.hint
            ) from None
        for path in foreign:
            self._context.warn(
                "ForeignTemplate",
                "template text that is no placeholder of OME's is passed on unchanged",
                path=f"{where}: {path}",
            )
        pod = {**pod, "containers": containers}
        if self._trace is not None:
            self._trace.filled(pod)
        return pod

    def _add_model(self, pod: dict[str, Any]) -> dict[str, Any]:
        """Volumes, node selector and affinity of engines and decoders."""
        mounts = [self._model, *self._overlays.values()] if self._model else []
        pod = with_volumes(pod, [mount for mount in mounts if mount], self._name)
        self._note(OME, pod)
        own = [self._own.get("nodeSelector") or {}]
        if self._part:
            own.append((self._own.get(self._part) or {}).get("nodeSelector") or {})
        runtime = self._context.runtime_spec.get("nodeSelector") or {}
        self._trace_selectors(pod, own)
        pod = select_nodes(pod, self._model, runtime, self._accelerator, own)
        pod = with_affinity(pod, self._accelerator, own_affinity=bool(self._own.get("affinity")))
        if self._accelerator:
            self._note(f"AcceleratorClass/{self._accelerator.name}", pod)
        return pod

    def _trace_selectors(self, pod: Json, own: list[Mapping[str, str]]) -> None:
        """Attribute the node selector, layer by layer."""
        if self._trace is None:
            return
        self._note("InferenceService", select_nodes(pod, None, {}, None, own))
        self._note(OME, select_nodes(pod, self._model, {}, None, own))
        for ref, _, so_far in self._context.stages:
            selector = so_far.get("nodeSelector") or {}
            self._note(str(ref), select_nodes(pod, self._model, selector, None, own))
