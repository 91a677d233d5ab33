"""Build the programs from the pinned Go modules of `go/`, once per digest."""

from __future__ import annotations

import fcntl
import os
import platform
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from controlplane.binaries import (
    GO,
    PROGRAMS,
    Program,
    cache_root,
    located,
    module_version,
    sources_digest,
)
from controlplane.errors import ControlPlaneError

__all__ = ["GO_MISSING", "available", "build", "cache_folder"]

Say = Callable[[str], None]

# What go.mod of the three modules asks for.
_OLDEST = (1, 26)
GO_MISSING = (
    "Go 1.26 or newer is needed to build the control plane, and `go` is not on the PATH. Install it from "
    "https://go.dev/dl or with your system's packages, or let KUBEBUILDER_ASSETS name a folder with "
    "etcd, kube-apiserver, kube-controller-manager, kube-scheduler and kwok."
)
_TICK = 15.0


def cache_folder(environ: Mapping[str, str]) -> Path | None:
    """The folder of the cache for the sources at hand; None where no usable Go is installed."""
    try:
        version = _go_version(environ)
    except ControlPlaneError:
        return None
    return cache_root(environ) / sources_digest(
        f"{version} {platform.system()} {platform.machine()}"
    )


def available(environ: Mapping[str, str]) -> dict[str, Path]:
    """The programs that are there, by name. Needs Go only when one isn't found without the cache."""
    found = located(environ, None)
    if len(found) == len(PROGRAMS):
        return found
    return located(environ, cache_folder(environ))


def build(environ: Mapping[str, str], say: Say) -> dict[str, Path]:
    """Build what isn't there and return all programs by name.

    Raises `ControlPlaneError` if Go is missing or too old, or a build fails. Two builds at a time wait for
    each other, and one that is interrupted leaves only whole programs in the cache.
    """
    found = located(environ, None)
    if len(found) == len(PROGRAMS):
        return found
    _go_version(environ)
    folder = cache_folder(environ)
    assert folder is not None
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder / "lock", say):
        found = located(environ, folder)
        missing = [program for program in PROGRAMS if program.name not in found]
        if missing:
            say(f"Building a control plane from Go modules into {folder}, once (some ten minutes).")
        for index, program in enumerate(missing, 1):
            _build_one(program, folder, environ, say, f"{index} of {len(missing)}")
    return located(environ, folder)


def _go_version(environ: Mapping[str, str]) -> str:
    """Such as `go1.26.8`: of the toolchain that the modules are built with."""
    go = shutil.which("go", path=environ.get("PATH", os.defpath))
    if go is None:
        raise ControlPlaneError(GO_MISSING)
    run = subprocess.run(
        [go, "env", "GOVERSION"],
        cwd=GO / PROGRAMS[0].module,
        env={**environ, "GOWORK": "off"},
        capture_output=True,
        text=True,
    )
    version = run.stdout.strip()
    number = re.match(r"go(\d+)\.(\d+)", version)
    if run.returncode or number is None:
        raise ControlPlaneError(
            f"`go env GOVERSION` failed: {run.stderr.strip() or version}. {GO_MISSING}"
        )
    if (int(number[1]), int(number[2])) < _OLDEST:
        raise ControlPlaneError(f"{version} is too old. {GO_MISSING}")
    return version


def _build_one(
    program: Program, folder: Path, environ: Mapping[str, str], say: Say, which: str
) -> None:
    version = module_version(program)
    say(f"[{which}] {program.name} {version} …")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(dir=folder, prefix=".building-") as scratch:
        target = Path(scratch) / program.name
        command = ["go", "build", "-trimpath", "-mod=readonly", "-buildvcs=false"]
        command += ["-ldflags", program.ldflags(version), "-o", str(target), program.package]
        with tempfile.TemporaryFile("w+") as log:
            code = _watched(
                command, program.module, environ, log.fileno(), lambda: _tick(say, began)
            )
            log.seek(0)
            if code:
                tail = "".join(log.readlines()[-20:]).rstrip()
                raise ControlPlaneError(
                    f"building {program.name} failed (go ended with {code}):\n{tail}"
                )
        target.replace(folder / program.name)
    say(f"[{which}] {program.name} built in {time.monotonic() - began:.0f} s")


def _tick(say: Say, began: float) -> None:
    say(f"        … {time.monotonic() - began:.0f} s")


def _watched(
    command: list[str], module: str, environ: Mapping[str, str], log: int, tick: Callable[[], None]
) -> int:
    """Run a build, with a sign of life every now and then; its exit code."""
    with subprocess.Popen(
        command,
        cwd=GO / module,
        env={**environ, "CGO_ENABLED": "0", "GOWORK": "off"},
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
    ) as process:
        while True:
            try:
                return process.wait(_TICK)
            except subprocess.TimeoutExpired:
                tick()
            except BaseException:
                process.terminate()
                raise


@contextmanager
def _locked(path: Path, say: Say) -> Iterator[None]:
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say("Waiting for another build of the control plane to end …")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
