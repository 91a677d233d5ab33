"""Which programs make a control plane, and where they are found."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from controlplane.errors import ControlPlaneError

__all__ = [
    "PROGRAMS",
    "Program",
    "cache_root",
    "located",
    "module_version",
    "required",
    "sources_digest",
]

GO = Path(__file__).parent / "go"
_GITVERSION = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")


@dataclass(frozen=True)
class Program:
    """A program: the Go module of `go/` that pins it, and the package that is built there."""

    name: str
    module: str
    package: str
    requires: str

    def ldflags(self, version: str) -> str:
        """The linker's flags: no symbols, and the version that the program reports."""
        flags = ["-s", "-w"]
        if self.module == "kubernetes":
            major, minor = version.removeprefix("v").split(".")[:2]
            for package in _GITVERSION:
                flags += [f"-X {package}.gitVersion={version}"]
                flags += [f"-X {package}.gitMajor={major}", f"-X {package}.gitMinor={minor}"]
        return " ".join(flags)


def _kubernetes(name: str) -> Program:
    return Program(name, "kubernetes", f"k8s.io/kubernetes/cmd/{name}", "k8s.io/kubernetes")


# The smallest come first, so that a mistake shows early.
PROGRAMS = (
    Program("etcd", "etcd", ".", "go.etcd.io/etcd/server/v3"),
    Program("kwok", "kwok", "sigs.k8s.io/kwok/cmd/kwok", "sigs.k8s.io/kwok"),
    _kubernetes("kube-scheduler"),
    _kubernetes("kube-controller-manager"),
    _kubernetes("kube-apiserver"),
)


def module_version(program: Program, go: Path = GO) -> str:
    """The version that the program's go.mod pins."""
    text = (go / program.module / "go.mod").read_text()
    found = re.search(rf"^require {re.escape(program.requires)} (v\S+)$", text, re.MULTILINE)
    if found is None:
        raise ControlPlaneError(f"{program.module}/go.mod doesn't pin {program.requires}")
    return found[1]


def sources_digest(go_version: str, go: Path = GO) -> str:
    """What a build depends on, in 16 digits: the files of `go/` and the version of Go."""
    digest = hashlib.sha256(go_version.encode())
    for file in sorted(go.glob("*/*")):
        digest.update(f"\0{file.relative_to(go)}\0".encode())
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def cache_root(environ: Mapping[str, str]) -> Path:
    """The folder that holds one folder of programs per digest."""
    home = environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "ome-controlplane"


def located(environ: Mapping[str, str], cache: Path | None) -> dict[str, Path]:
    """The programs that are there, by name: of `KUBEBUILDER_ASSETS`, else the PATH, else the cache."""
    found: dict[str, Path] = {}
    assets = environ.get("KUBEBUILDER_ASSETS")
    for program in PROGRAMS:
        ways = [assets, environ.get("PATH", os.defpath), str(cache) if cache else None]
        for way in ways:
            path = shutil.which(program.name, path=way) if way else None
            if path is not None:
                found[program.name] = Path(path).absolute()
                break
    return found


def required(programs: Mapping[str, Path]) -> Mapping[str, Path]:
    """The programs, if none is missing; otherwise an error that says how to build them."""
    missing = [program.name for program in PROGRAMS if program.name not in programs]
    if missing:
        raise ControlPlaneError(
            f"the control plane isn't built: {', '.join(missing)} not found. "
            "Run `make controlplane` (once; some ten minutes)."
        )
    return programs
