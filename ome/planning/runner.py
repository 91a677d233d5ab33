"""The edits on a component's primary runner, in their fixed order.

Source: OME serving-runtimes document (v1.3), "The engine, decoder and router" and "Per-accelerator
configuration".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ome.merging import argv
from ome.merging.argspatch import has_operators, script_of
from ome.merging.injection import (
    count_accelerators,
    set_env,
    with_env_if_absent,
    with_extra_mounts,
    with_resources,
)
from ome.planning.accelerators import Accelerator
from ome.planning.model import ModelMount

__all__ = ["RunnerEdits", "edit_runner"]

Json = Mapping[str, Any]
OME = "OME"


@dataclass(frozen=True, slots=True)
class RunnerEdits:
    """Everything that goes into a runner: the model, overlays by variable name, the class, the
    pods of a replica, and whether the class's resources count (the service's own win)."""

    model: ModelMount | None
    overlays: Mapping[str, ModelMount]
    accelerator: Accelerator | None
    takes_class_resources: bool
    pods_per_replica: int
    accelerator_names: Sequence[str]


def edit_runner(
    runner: Json, edits: RunnerEdits, dialect: argv.Dialect, missed: list[str]
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each edit in order: the layer that makes it, and the runner after it.

    `missed` gets what the class's settings ask for and no word of the runner can take.
    """
    accelerator = edits.accelerator
    overrides = accelerator.overrides if accelerator else {}
    layer = f"AcceleratorClass/{accelerator.name}" if accelerator else OME
    edited = dict(runner)
    edited = _set_model_paths(edited, edits)
    yield OME, edited
    if environment := overrides.get("environmentOverride"):
        edited = set_env(edited, environment)
        yield layer, edited
    mounts = [m.mount for m in (edits.model, *edits.overlays.values()) if m and m.mount]
    edited = with_extra_mounts(edited, mounts)
    yield OME, edited
    if accelerator and edits.takes_class_resources:
        edited = with_resources(edited, accelerator.resources)
    if arguments := overrides.get("runtimeArgsOverride"):
        edited = _override(edited, arguments, dialect, missed)
    parallelism = overrides.get("tensorParallelismOverride")
    if parallelism is not None:
        edited = _set_parallelism(edited, parallelism, dialect, missed)
    yield layer, edited
    count = count_accelerators(edited, edits.accelerator_names)
    if count and parallelism is None:
        edited = set_env(edited, {"PARALLELISM_SIZE": str(count * edits.pods_per_replica)})
    yield OME, edited


def _override(
    runner: dict[str, Any], arguments: Sequence[str], dialect: argv.Dialect, missed: list[str]
) -> dict[str, Any]:
    """The class's arguments in `args`. A script that is more than one plain command isn't touched."""
    found = script_of(runner)
    if found is not None:
        script, field = found
        if has_operators(script) or field == "command":
            missed.append(f"{' '.join(arguments)}: a shell script can't take them")
            return runner
    words = argv.override(runner.get("args") or (), arguments, dialect, as_script=found is not None)
    return {**runner, "args": words}


def _set_model_paths(runner: dict[str, Any], edits: RunnerEdits) -> dict[str, Any]:
    if edits.model and edits.model.path:
        runner = with_env_if_absent(runner, "MODEL_PATH", edits.model.path)
    for variable, overlay in edits.overlays.items():
        if overlay.path:
            runner = with_env_if_absent(runner, variable, overlay.path)
    return runner


def _set_parallelism(
    runner: Json, parallelism: Json, dialect: argv.Dialect, missed: list[str]
) -> dict[str, Any]:
    """Rewrite the sizes above 0 in `args`, or else in `command`; a flag is never added."""
    edited = dict(runner)
    sizes = (
        ("tensorParallelSize", dialect.tensor),
        ("pipelineParallelSize", dialect.pipeline),
    )
    for name, spellings in sizes:
        size = parallelism.get(name)
        if not size or size < 0:
            continue
        for words in ("args", "command"):
            changed = argv.set_value(edited.get(words) or (), spellings, size, dialect)
            if changed is not None:
                edited[words] = changed
                break
        else:
            if size > 1:  # without the flag the size is 1
                missed.append(
                    f"{name} {size}: there is none of {', '.join(spellings)} in its arguments"
                )
    return edited
