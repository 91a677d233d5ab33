"""What fails or hurts later in a pod that runs SGLang: one rule, one function, in a fixed order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from ome.engines import Finding, PodView, Severity
from ome_engine_sglang import probes, spelling
from ome_engine_sglang.commandline import CommandLine, read_command_line
from ome_engine_sglang.probes import PROBES

__all__ = ["RULES", "find"]

_LOOPBACK: Final = ("localhost", "::1", "[::1]", "127.")

OPAQUE: Final = "the flags of SGLang aren't checked, because {reason}"
LOOPBACK: Final = "SGLang listens on {host} only, so neither probes nor other pods reach it"
NO_MEMORY: Final = (
    "with tensor parallelism of {size}, /dev/shm must hold more than its default 64 MB"
)
NO_MEDIUM: Final = "the volume at /dev/shm is on disk, not in memory"
TOO_MANY: Final = "the flags need {needed} accelerators ({sizes}), the container has {found}{nodes}"


def find(view: PodView) -> list[Finding]:
    """Everything that the rules find in a pod, in their order. Changes nothing."""
    line = read_command_line(view)
    return [finding for rule in RULES for finding in rule(view, line)]


def find_opaque(view: PodView, line: CommandLine) -> Iterator[Finding]:
    """A launch whose flags can't be read, or not all of them."""
    reason = view.detection.opaque
    if reason:
        yield Finding(
            "SGLangOpaque",
            Severity.WARNING,
            OPAQUE.format(reason=reason),
            line.path,
            "write the command and its flags as one list",
        )


def find_loopback(view: PodView, line: CommandLine) -> Iterator[Finding]:
    """An engine or decoder that nothing outside its pod can reach."""
    if view.component not in ("engine", "decoder") or not line.is_readable:
        return
    is_follower = line.has("--node-rank") and line.number("--node-rank", 0) != 0
    if is_follower and not any(view.container.get(one) for one in PROBES):
        return  # ranks above 0 serve nothing but a stub for probes
    flag = line.last("--host")
    if flag is None:
        if not line.is_whole or not line.is_language:
            return
        host, path, fix = "127.0.0.1", _tail(view), "add --host=0.0.0.0"
    else:
        host = flag.values[0] if flag.values else ""
        path, fix = flag.path, "write --host=0.0.0.0"
        if not host.startswith(_LOOPBACK):
            return
    text = LOOPBACK.format(host=host)
    yield Finding("SGLangLoopback", Severity.ERROR, text, path, fix, "ai-dynamo/modelexpress#397")


def _tail(view: PodView) -> str:
    return "args" if view.container.get("args") else "command"


def find_memory(view: PodView, line: CommandLine) -> Iterator[Finding]:
    """Tensor parallelism without shared memory to pass tensors through."""
    size = line.number("--tp-size", 1)
    if size is None or size < 2 or view.pod.get("hostIPC"):
        return
    mounts = view.container.get("volumeMounts") or ()
    at_shm = [mount for mount in mounts if str(mount.get("mountPath")).rstrip("/") == "/dev/shm"]
    text = NO_MEMORY.format(size=size)
    fix = "mount an emptyDir volume of medium Memory at /dev/shm"
    if at_shm:
        named = at_shm[0].get("name")
        volumes = [one for one in view.pod.get("volumes") or () if one.get("name") == named]
        if not volumes or "emptyDir" not in volumes[0]:
            return
        if (volumes[0]["emptyDir"] or {}).get("medium") == "Memory":
            return
        text, fix = NO_MEDIUM, f'set emptyDir.medium of the volume "{named}" to Memory'
    yield Finding(
        "SGLangNoSharedMemory",
        Severity.WARNING,
        text,
        "volumeMounts",
        fix,
        "vllm-project/production-stack#276",
    )


def find_accelerators(view: PodView, line: CommandLine) -> Iterator[Finding]:
    """More accelerators asked for by flags than the pods of one instance have."""
    names = ("--tp-size", "--pp-size", "--dp-size", "--nnodes")
    tensor, pipeline, data, nodes = (line.number(name, 1) for name in names)
    if tensor is None or pipeline is None or data is None or nodes is None:
        return
    if view.accelerators < 1 or nodes < 1 or line.has("--use-ray") or not line.is_language:
        return
    if line.has("--enable-dp-attention"):  # attention's data parallelism lies inside the tensor's
        data = 1
    needed = tensor * pipeline * data
    if needed > view.accelerators * nodes:
        sizes = f"tensor {tensor} x pipeline {pipeline} x data {data}"
        over = f" on each of {nodes} nodes" if nodes > 1 else ""
        text = TOO_MANY.format(needed=needed, sizes=sizes, found=view.accelerators, nodes=over)
        flag = line.last("--tp-size") or line.last("--pp-size") or line.last("--dp-size")
        path = flag.path if flag is not None else "resources.limits"
        fix = "ask for as many accelerators as the flags need, or lower the sizes"
        yield Finding(
            "SGLangTooFewAccelerators", Severity.ERROR, text, path, fix, "sgl-project/sglang#3470"
        )


Rule = Callable[[PodView, CommandLine], Iterator[Finding]]


def _of_flags(rule: Callable[[CommandLine], Iterator[Finding]]) -> Rule:
    return lambda _, line: rule(line)


RULES: Final[tuple[Rule, ...]] = (
    find_opaque,
    find_loopback,
    probes.find_ports,
    probes.find_timeouts,
    find_memory,
    find_accelerators,
    _of_flags(spelling.find_ambiguous),
    _of_flags(spelling.find_prefixes),
    _of_flags(spelling.find_misspelt),
    _of_flags(spelling.find_unknown),
    _of_flags(spelling.find_repeated),
)
