"""Rules about how the server is launched, and with which model."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ome.engines import Finding, PodView, Severity
from ome.engines.kit import CommandLine, order_of
from ome_engine_vllm.launch import API_MODULE, GRPC_MODULE

__all__ = ["find_deprecated_launch", "find_model"]

_DEPRECATED_SINCE: Final = order_of("0.30.0") or ()
_MODEL_FLAG_FAILS: Final = (order_of("0.8.5") or (), order_of("0.12.0") or ())
_INSTEAD: Final = {API_MODULE: "vllm serve MODEL", GRPC_MODULE: "vllm serve MODEL --grpc"}

DEPRECATED: Final = "python -m {module} is deprecated in vLLM {version}"
FLAG_FAILS: Final = "vLLM {version} stops when vllm serve is given --model"
FLAG_WARNS: Final = "vllm serve is given --model, which vLLM will drop"
TWO_MODELS: Final = "vllm serve is given two models, {model} and --model, so its parser stops"
NO_MODEL: Final = "no model is named, so vLLM serves its own default"
NOT_POSITIONAL: Final = (
    "{module} doesn't read the model from {model}, so vLLM serves its own default"
)


def find_deprecated_launch(_: PodView, line: CommandLine) -> Iterator[Finding]:
    """A module that vLLM wants to drop."""
    instead = _INSTEAD.get(line.launch.program)
    at = order_of(line.version)
    if instead is None or at is None or at < _DEPRECATED_SINCE:
        return
    text = DEPRECATED.format(module=line.launch.program, version=line.version)
    fix = f"launch {instead}"
    yield Finding(
        "VLLMDeprecatedLaunch",
        Severity.WARNING,
        text,
        "command",
        fix,
        "vllm-project/aibrix#1960",
    )


def find_model(_: PodView, line: CommandLine) -> Iterator[Finding]:
    """A model that isn't named, or not where the server looks for it."""
    flag = line.last("--model")
    if not line.is_readable or not line.launch.program:
        return
    if not line.launch.is_serve:
        if flag is None and line.is_whole:
            words = line.positional[:1]
            module = line.launch.program
            text = NOT_POSITIONAL.format(module=module, model=words[0]) if words else NO_MODEL
            fix = "name it with --model"
            yield Finding("VLLMModel", Severity.ERROR, text, line.path, fix)
        return
    if flag is None:
        if line.is_whole and not line.positional:
            fix = "name it after vllm serve"
            yield Finding("VLLMModel", Severity.ERROR, NO_MODEL, line.path, fix)
        return
    fix = "name the model after vllm serve, without --model"
    at = order_of(line.version)
    if line.positional:
        text, severity = TWO_MODELS.format(model=line.positional[0]), Severity.ERROR
    elif at is not None and _MODEL_FLAG_FAILS[0] <= at < _MODEL_FLAG_FAILS[1]:
        text, severity = FLAG_FAILS.format(version=line.version), Severity.ERROR
    else:
        text, severity = FLAG_WARNS, Severity.WARNING
    yield Finding("VLLMModel", severity, text, flag.path, fix)
