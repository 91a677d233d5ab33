"""Rules about what a launch of TokenSpeed is given: sizes, words, flags that nothing takes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from ome.engines import Finding, PodView, Severity, kit
from ome.engines.kit import CommandLine, Rule
from ome_engine_tokenspeed.launch import has_gateway, is_headless
from ome_engine_tokenspeed.sizes import layout_of

__all__ = ["find_address", "find_encoder", "find_role", "find_words", "late"]

NO_ROLE: Final = "TokenSpeed takes pipeline stages on prefill servers alone, and stops"
NO_ADDRESS: Final = "TokenSpeed needs --dist-init-addr {why}, and stops"
ENCODER: Final = (
    "the {heads} attention heads of Kimi-K3's vision encoder can't be shared by {size} accelerators"
)
STRAY: Final = 'TokenSpeed takes a plain word only as the model, {where}, and stops at "{word}"'
TWICE: Final = "the model is given as a plain word and by {flag}, and TokenSpeed stops"
LATE: Final = ", and the gateway stops at it only after the model has been loaded"

_K3: Final = re.compile(r"kimi-?k3")
_ENCODER_HEADS: Final = 12
_TENSOR: Final = ("--attn-tp-size", "--tensor-parallel-size", "--world-size")
_REFERENCE: Final = re.compile(r"\$\(([\w.-]+)\)")


def find_role(view: PodView, line: CommandLine) -> Iterator[Finding]:
    """Pipeline stages where there are none."""
    stages = line.last("--pipeline-parallel-size")
    if stages is None or not line.is_whole or (layout_of(line).pipeline or 1) < 2:
        return
    if line.value("--disaggregation-mode") != "prefill":
        fix = "use tensor parallelism, or --disaggregation-mode=prefill"
        yield Finding("TokenSpeedPipelineRole", Severity.ERROR, NO_ROLE, stages.path, fix)


def find_address(view: PodView, line: CommandLine) -> Iterator[Finding]:
    """Several replicas or nodes that don't know where to meet."""
    if not line.is_whole or line.has("--dist-init-addr"):
        return
    several = (
        (kit.size(line, "--nnodes"), ("--nnodes",), "with several nodes"),
        (layout_of(line).data, ("--data-parallel-size", "--world-size"), "for data parallelism"),
    )
    for size, flags, why in several:
        given = [flag for flag in map(line.last, flags) if flag is not None]
        if given and (size or 1) > 1:
            text = NO_ADDRESS.format(why=why)
            fix = "add --dist-init-addr=HOST:PORT"
            yield Finding("TokenSpeedNoAddress", Severity.ERROR, text, given[0].path, fix)
            return


def find_encoder(view: PodView, line: CommandLine) -> Iterator[Finding]:
    """Kimi-K3, whose vision encoder has fewer heads than its text has to share."""
    size = layout_of(line).tensor
    if size is None or _ENCODER_HEADS % size == 0 or not line.is_whole:
        return
    if not line.is_readable or line.value("--mm-encoder-tp-mode") not in ("", "weights"):
        return
    if line.has("--language-model-only") or not any(map(_K3.search, _names(view, line))):
        return
    given = [flag for flag in map(line.last, _TENSOR) if flag is not None]
    yield Finding(
        "TokenSpeedEncoder",
        Severity.ERROR,
        ENCODER.format(heads=_ENCODER_HEADS, size=size),
        given[0].path if given else line.path,
        "add --mm-encoder-tp-mode=data",
        "lightseekorg/tokenspeed: docs/serving/parallelism.md",
    )


def _names(view: PodView, line: CommandLine) -> list[str]:
    """What the model may be called, as TokenSpeed writes names when it looks for a family of models."""
    variables = {one.get("name"): one.get("value") for one in view.container.get("env") or ()}
    given = [*line.positional[:1], line.value("--model"), line.value("--served-model-name")]
    found = [_REFERENCE.sub(lambda one: str(variables.get(one[1], "")), text) for text in given]
    return [text.lower().replace("_", "-") for text in found]


def find_words(view: PodView, line: CommandLine) -> Iterator[Finding]:
    """Plain words that aren't the model. `serve` takes that as its first word; an engine alone anywhere."""
    if not line.is_readable or line.launch.program == "":
        return
    path = "args" if view.container.get("args") else "command"
    is_split = line.launch.is_serve and not is_headless(line)
    is_late = is_split and line.launch.arguments[:1] != line.positional[:1]
    stray = line.positional if is_late else line.positional[1:]
    where = "right after serve" if is_split else "once"
    for word in stray[:1]:
        if "$(" not in word:
            text = STRAY.format(where=where, word=word)
            fix = "write it as the value of a flag, or remove it"
            yield Finding("TokenSpeedStrayWord", Severity.ERROR, text, path, fix)
    model = line.last("--model")
    if model is not None and line.positional and not stray:
        text = TWICE.format(flag=model.key)
        yield Finding("TokenSpeedStrayWord", Severity.ERROR, text, model.path, "keep one of them")


def late(rule: Rule) -> Rule:
    """A rule about flags that no parser takes, which says when that shows: `serve` hands a flag of two
    dashes that the engine doesn't know to the gateway, which starts last."""

    def found(view: PodView, line: CommandLine) -> Iterator[Finding]:
        for finding in rule(view, line):
            is_short = re.match(r"-(?!-)", finding.message) is not None
            is_late = has_gateway(line) and not is_short
            yield replace(finding, message=finding.message + LATE) if is_late else finding

    return found
