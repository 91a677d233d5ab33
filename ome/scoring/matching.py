"""One `supportedModelFormats` entry against a model: every reason why it doesn't match.

Source: OME "Model version matching" and "Diffusion pipeline runtime matching" documents (v1.3).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from ome.scoring.versions import versions_match

__all__ = ["entry_mismatches", "model_label", "pipeline_mismatch"]

Json = Mapping[str, Any]

_COMPONENTS: Final = ("scheduler", "textEncoder", "tokenizer", "transformer", "vae")
NO_CACHE: Final = "no model cache provider is configured for sharded model loading"


def model_label(model: Json) -> str:
    """The model as mismatch messages name it; absent parts are left out."""
    model_format = model.get("modelFormat") or {}
    framework = model.get("modelFramework") or {}
    parts = [
        model_format.get("name"),
        model_format.get("version"),
        model.get("modelArchitecture"),
        model.get("quantization"),
        framework.get("name"),
        framework.get("version") if framework.get("name") else None,
    ]
    return ":".join(["mt", *(part for part in parts if part)])


def entry_mismatches(entry: Json, model: Json) -> list[str]:
    """Every reason why the entry doesn't match the model, in the documented order; empty if it does."""
    reasons = []
    if model.get("distribution") == "Sharded":
        reasons.append(NO_CACHE)
    if pipeline := pipeline_mismatch(
        entry.get("diffusionPipeline"), model.get("diffusionPipeline")
    ):
        reasons.append(pipeline)
    for what, field in (("architecture", "modelArchitecture"), ("quantization", "quantization")):
        reasons.extend(_presence(what, entry.get(field), model.get(field)))
    reasons.extend(_named(entry.get("modelFormat"), model.get("modelFormat"), "format"))
    reasons.extend(_named(entry.get("modelFramework"), model.get("modelFramework"), "framework"))
    return reasons


def _presence(what: str, ours: str | None, theirs: str | None) -> Iterator[str]:
    """Set on both sides it compares exactly; set on one it is a mismatch."""
    if ours is not None and theirs is not None:
        if ours != theirs:
            yield f"{what} mismatch (model={theirs}, runtime={ours})"
    elif ours is not None:
        yield f"model has no {what} but runtime requires {ours}"
    elif theirs is not None:
        yield f"model has {what} {theirs} but runtime has no {what} requirement"


def _named(ours: Json | None, theirs: Json | None, what: str) -> Iterator[str]:
    """Names must be equal, then versions match; a version set on one side is a mismatch."""
    wanted, offered = (ours or {}).get("name"), (theirs or {}).get("name")
    if not wanted or not offered:
        yield from _presence(what, wanted or None, offered or None)
        return
    if wanted != offered:
        yield f"{what} name mismatch (model={offered}, runtime={wanted})"
        return
    assert ours is not None
    assert theirs is not None
    need, have = ours.get("version"), theirs.get("version")
    if need is not None and have is not None:
        if not versions_match(need, ours.get("operator"), have):
            yield f"{what} version mismatch (model={have}, runtime={need})"
    elif need is not None:
        yield f"model has no {what} version but runtime requires {need}"
    elif have is not None:
        yield f"model has {what} version but runtime has no version requirement"


def pipeline_mismatch(ours: Json | None, theirs: Json | None) -> str | None:
    """The first thing of an entry's pipeline that the model's lacks; None when it has all."""
    if ours is None:
        return None
    if theirs is None:
        return "diffusion pipeline required by runtime but not specified in model"
    wanted, offered = ours.get("className"), theirs.get("className")
    if wanted is not None and wanted != offered:
        shown = "<nil>" if offered is None else offered
        return f"pipeline class mismatch (model={shown}, runtime={wanted})"
    for name in _COMPONENTS:
        if (part := ours.get(name)) is not None:
            if theirs.get(name) is None:
                return f"component {name} required by runtime but not specified in model"
            if reason := _part_mismatch(name, part, theirs[name]):
                return reason
    return _additional_mismatch(
        ours.get("additionalComponents"), theirs.get("additionalComponents")
    )


def _additional_mismatch(ours: Json | None, theirs: Json | None) -> str | None:
    if not ours:
        return None
    if not theirs:
        return "diffusion pipeline missing required additional components"
    for name in sorted(ours):
        if theirs.get(name) is None:
            return f"diffusion component {name} missing in model"
        if reason := _part_mismatch(name, ours[name] or {}, theirs[name]):
            return reason
    return None


def _part_mismatch(name: str, ours: Json, theirs: Json) -> str | None:
    """An empty library or type of the entry means any; the model's missing one prints as empty."""
    for field in ("library", "type"):
        wanted, offered = ours.get(field), theirs.get(field) or ""
        if wanted and wanted != offered:
            return f"{name} {field} mismatch (model={offered}, runtime={wanted})"
    return None
