"""Rules about a pod and the flags of the engine in it: what listens, what is asked for, what is there.

Each function makes a rule that reports under the given code.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from ome.engines.kit.commandline import CommandLine
from ome.engines.kit.spelling import Rule
from ome.engines.kit.versions import order_of
from ome.engines.types import Finding, PodView, Severity

__all__ = [
    "PROBES",
    "accelerators",
    "is_follower",
    "loopback",
    "opaque",
    "probe_handlers",
    "probe_ports",
    "served_name",
    "shared_memory",
    "unversioned",
]

PROBES: Final = ("startupProbe", "readinessProbe", "livenessProbe")
"""The probes of a container, in the order they are reported."""

_HANDLERS: Final = ("httpGet", "tcpSocket", "grpc")
_LOOPBACK: Final = ("localhost", "::1", "[::1]", "127.")

OPAQUE: Final = "the flags of {engine} aren't checked, because {reason}"
LOOPBACK: Final = "{engine} listens on {host} only, so neither probes nor other pods reach it"
NO_MEMORY: Final = (
    "with tensor parallelism of {size}, /dev/shm must hold more than its default 64 MB"
)
NO_MEDIUM: Final = "the volume at /dev/shm is on disk, not in memory"
TOO_MANY: Final = "the flags need {needed} accelerators ({sizes}), the container has {found}{nodes}"
NO_VERSION: Final = "the version of {engine} {what}, so its flags aren't checked against one"
VERSION_ANNOTATION: Final = "runtime.ome.io/engine-version"
NO_NAME: Final = "{engine} serves the model under the path of its files, which clients have to give"
WRONG_PORT: Final = "the probe asks port {port}, {engine} listens on {listened}"
NO_SUCH_PORT: Final = 'the probe asks the port "{port}", which the container doesn\'t name'


def opaque(code: str) -> Rule:
    """A launch whose flags can't be read, or not all of them."""

    def rule(view: PodView, line: CommandLine) -> Iterator[Finding]:
        reason = view.detection.opaque
        if reason:
            text = OPAQUE.format(engine=line.server.name, reason=reason)
            fix = "write the command and its flags as one list"
            yield Finding(code, Severity.WARNING, text, line.path, fix)

    return rule


def unversioned(code: str) -> Rule:
    """A server whose version isn't known, so that only what is wrong in every release is found."""

    def rule(view: PodView, line: CommandLine) -> Iterator[Finding]:
        if order_of(line.version) is None and line.is_tabled and line.is_readable:
            what = f"is no version: {line.version}" if line.version else "isn't known"
            text = NO_VERSION.format(engine=line.server.name, what=what)
            yield Finding(
                code, Severity.NOTE, text, "image", f"annotate it with {VERSION_ANNOTATION}"
            )

    return rule


def served_name(code: str, flag: str) -> Rule:
    """A server that gives its model the name of its files."""

    def rule(view: PodView, line: CommandLine) -> Iterator[Finding]:
        if view.component not in ("engine", "decoder") or not line.is_whole or line.has(flag):
            return
        text = NO_NAME.format(engine=line.server.name)
        yield Finding(code, Severity.NOTE, text, line.path, f"add {flag}={{{{.Name}}}}")

    return rule


def is_follower(line: CommandLine, rank: str) -> bool:
    """Whether a server of several nodes isn't the first one, as far as its rank says."""
    return line.has(rank) and line.number(rank, 0) != 0


def loopback(code: str, default: str, *, rank: str = "--node-rank", reference: str = "") -> Rule:
    """An engine or decoder that nothing outside its pod can reach.

    `default` is what it listens on without `--host`. Servers above `rank` 0 may listen where they
    like, unless they are probed.
    """

    def rule(view: PodView, line: CommandLine) -> Iterator[Finding]:
        if view.component not in ("engine", "decoder") or not line.is_readable:
            return
        if is_follower(line, rank) and not any(view.container.get(one) for one in PROBES):
            return
        flag = line.last("--host")
        if flag is None:
            if not line.is_whole or not line.is_tabled:
                return
            host, path, fix = default, _tail(view), "add --host=0.0.0.0"
        else:
            host = flag.values[0] if flag.values else ""
            path, fix = flag.path, "write --host=0.0.0.0"
        if host.startswith(_LOOPBACK):
            text = LOOPBACK.format(engine=line.server.name, host=host)
            yield Finding(code, Severity.ERROR, text, path, fix, reference)

    return rule


def _tail(view: PodView) -> str:
    return "args" if view.container.get("args") else "command"


def shared_memory(code: str, tensor: str, reference: str = "") -> Rule:
    """Tensor parallelism (the flag `tensor`) without shared memory to pass tensors through."""

    def rule(view: PodView, line: CommandLine) -> Iterator[Finding]:
        size = line.number(tensor, 1)
        if size is None or size < 2 or view.pod.get("hostIPC"):
            return
        mounts = view.container.get("volumeMounts") or ()
        at_shm = [one for one in mounts if str(one.get("mountPath")).rstrip("/") == "/dev/shm"]
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
        yield Finding(code, Severity.WARNING, text, "volumeMounts", fix, reference)

    return rule


Sizes = Callable[[CommandLine], Sequence[tuple[str, int]] | None]


def accelerators(
    code: str,
    sizes: Sizes,
    flags: Sequence[str],
    *,
    nodes: str = "--nnodes",
    reference: str = "",
) -> Rule:
    """More accelerators asked for by flags than the pods of one instance have.

    `sizes` gives the named factors of what is needed on all nodes, None when that can't be known;
    `nodes` is the flag with their number, and the first of `flags` that is given is reported.
    """

    def rule(view: PodView, line: CommandLine) -> Iterator[Finding]:
        factors = sizes(line)
        count = line.number(nodes, 1)
        if factors is None or count is None or view.accelerators < 1 or count < 1:
            return
        if not line.is_tabled:
            return
        needed = 1
        for _, size in factors:
            needed *= size
        if needed <= view.accelerators * count:
            return
        shown = " x ".join(f"{name} {size}" for name, size in factors)
        over = f" on each of {count} nodes" if count > 1 else ""
        text = TOO_MANY.format(needed=needed, sizes=shown, found=view.accelerators, nodes=over)
        given = [flag for flag in map(line.last, flags) if flag is not None]
        path = given[0].path if given else "resources.limits"
        fix = "ask for as many accelerators as the flags need, or lower the sizes"
        yield Finding(code, Severity.ERROR, text, path, fix, reference)

    return rule


def probe_ports(
    code: str, default: int, others: Callable[[CommandLine, int], set[int]], port: str = "--port"
) -> Rule:
    """A probe on a port that neither the server nor a neighbour in the pod listens on.

    `default` is the server's port without the flag `port`, `others` what else it may have open.
    """

    def rule(view: PodView, line: CommandLine) -> Iterator[Finding]:
        if line.last(port) is None and not line.is_tabled:
            return
        served = line.number(port, default)
        if served is None:
            return
        listened = {served} | others(line, served) | _ports_of_neighbours(view)
        for name, handler, probe in probe_handlers(view):
            asked = _asked_port(probe, view)
            if probe.get("host") or asked in listened:
                continue
            text = WRONG_PORT.format(port=asked, engine=line.server.name, listened=served)
            if asked is None:
                text = NO_SUCH_PORT.format(port=probe.get("port"))
            path = f"{name}.{handler}.port"
            yield Finding(code, Severity.ERROR, text, path, f"set it to {served}")

    return rule


def probe_handlers(view: PodView) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """Every probe of the container that asks a port: its name, its kind and what it asks."""
    for name in PROBES:
        probe = view.container.get(name) or {}
        for handler in _HANDLERS:
            if probe.get(handler):
                yield name, handler, probe[handler]


def _ports_of_neighbours(view: PodView) -> set[int]:
    name = view.container.get("name")
    others = [one for one in view.pod.get("containers") or () if one.get("name") != name]
    others += view.pod.get("initContainers") or ()
    return {port.get("containerPort") for one in others for port in one.get("ports") or ()}


def _asked_port(probe: Mapping[str, Any], view: PodView) -> int | None:
    """The number of a probe's port, None for a name that the container doesn't have."""
    port = probe.get("port")
    if isinstance(port, int):
        return port
    if str(port).isdecimal():
        return int(str(port))
    named = [one for one in view.container.get("ports") or () if one.get("name") == port]
    found = named[0].get("containerPort") if named else None
    return found if isinstance(found, int) else None
