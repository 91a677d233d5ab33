"""Where a control plane lives, and whether it does: a folder whose lock its supervisor holds.

The lock is the kernel's (`flock`): it goes when the supervisor does, however that ended, so a folder whose
lock is free is left over, whatever is written in it. No process ID is trusted without the lock.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import re
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from controlplane.errors import ControlPlaneError
from controlplane.pki import Authority, Pair, write_private

__all__ = ["TEST_PREFIX", "Instance", "base_folder", "instances", "sweep"]

TEST_PREFIX = "test-"
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")


def base_folder(environ: Mapping[str, str]) -> Path:
    """The folder of this user's control planes: of `OME_CONTROLPLANE_STATE`, else a temporary one."""
    given = environ.get("OME_CONTROLPLANE_STATE")
    base = Path(given) if given else Path(tempfile.gettempdir()) / f"ome-controlplane-{os.getuid()}"
    base.mkdir(mode=0o700, parents=True, exist_ok=True)
    if base.is_symlink() or base.stat().st_uid != os.getuid():
        raise ControlPlaneError(
            f"{base} belongs to another user; set OME_CONTROLPLANE_STATE to a folder of yours"
        )
    return base.absolute()


@dataclass(frozen=True)
class Instance:
    """The folder of one control plane."""

    folder: Path

    @classmethod
    def named(cls, name: str, environ: Mapping[str, str]) -> Instance:
        """The control plane of that name, which need not exist."""
        if not _NAME.fullmatch(name):
            raise ControlPlaneError(
                f"{name!r} can't name a control plane: use a-z, 0-9 and -, up to 40"
            )
        return cls(base_folder(environ) / name)

    @property
    def name(self) -> str:
        """The name that `up`, `down` and `status` use."""
        return self.folder.name

    @property
    def pki(self) -> Path:
        """The folder of certificates and keys."""
        return self.folder / "pki"

    @property
    def data(self) -> Path:
        """The folder of etcd."""
        return self.folder / "data"

    def log(self, component: str) -> Path:
        """The log of a component, or of the `supervisor`."""
        return self.folder / f"{component}.log"

    def kubeconfig(self, user: str = "admin") -> Path:
        """The kubeconfig of a user."""
        return self.folder / f"{user}.kubeconfig"

    def state(self) -> dict[str, Any]:
        """What the supervisor wrote last; empty before it wrote anything."""
        try:
            found = json.loads((self.folder / "state.json").read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return {}
        return found if isinstance(found, dict) else {}

    def write_state(self, **state: Any) -> None:
        """Replace the state in one step."""
        new = self.folder / "state.json.new"
        write_private(new, json.dumps(state, indent=1).encode())
        new.replace(self.folder / "state.json")

    def write_kubeconfig(self, path: Path, server: str, user: str, pair: Pair) -> Path:
        """Write a kubeconfig that holds its certificates, and return its path."""
        authority = (self.pki / "ca.crt").read_bytes()
        write_private(
            path, yaml.safe_dump(_kubeconfig(self.name, server, user, pair, authority)).encode()
        )
        return path

    def user_kubeconfig(self, user: str, groups: Sequence[str] = ()) -> Path:
        """A kubeconfig for any user in any groups, who can do what RBAC grants them."""
        pair = Authority.read(self.pki).user(user, groups)
        safe = re.sub(r"[^A-Za-z0-9.-]", "_", user)
        with tempfile.NamedTemporaryFile(
            dir=self.folder, prefix=f"user-{safe}-", delete=False
        ) as file:
            path = Path(file.name)
        return self.write_kubeconfig(path, str(self.state()["server"]), user, pair)

    def try_lock(self, *, create: bool = True) -> int | None:
        """An open file that holds the lock; None if somebody else holds it, or there is no folder."""
        try:
            file = os.open(self.folder / "lock", os.O_RDWR | (os.O_CREAT if create else 0), 0o600)
        except FileNotFoundError:
            return None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # A folder that was removed since has another lock, or none.
            if os.stat(self.folder / "lock").st_ino == os.fstat(file).st_ino:
                return file
        except (BlockingIOError, FileNotFoundError):
            pass
        os.close(file)
        return None

    def running(self) -> bool:
        """Whether a supervisor holds the lock."""
        file = self.try_lock(create=False)
        if file is None:
            return (self.folder / "lock").exists()
        os.close(file)
        return False

    def claim(self) -> int:
        """Make the folder, empty and locked by us; `ControlPlaneError` if it is in use."""
        for _ in range(20):
            self.folder.mkdir(mode=0o700, exist_ok=True)
            file = self.try_lock()
            if file is not None:
                self.empty()
                return file
            time.sleep(0.05)
        raise ControlPlaneError(f"the control plane {self.name} is running already")

    def empty(self) -> None:
        """Remove what is in the folder, except its lock."""
        for path in self.folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            elif path.name != "lock":
                path.unlink()

    def remove(self) -> None:
        """Remove the folder; the lock, which is to be ours, goes last."""
        self.empty()
        shutil.rmtree(self.folder, ignore_errors=True)


def instances(environ: Mapping[str, str]) -> Iterator[Instance]:
    """All control planes of this user, running or left over, by name."""
    for folder in sorted(base_folder(environ).iterdir()):
        if folder.is_dir():
            yield Instance(folder)


def sweep(environ: Mapping[str, str]) -> None:
    """Remove what killed test runs left over."""
    for instance in instances(environ):
        if instance.name.startswith(TEST_PREFIX):
            file = instance.try_lock()
            if file is not None:
                instance.remove()
                os.close(file)


def _kubeconfig(name: str, server: str, user: str, pair: Pair, authority: bytes) -> dict[str, Any]:
    def text(content: bytes) -> str:
        return base64.b64encode(content).decode()

    cluster = {"server": server, "certificate-authority-data": text(authority)}
    credentials = {
        "client-certificate-data": text(pair.certificate),
        "client-key-data": text(pair.key),
    }
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": user, "user": credentials}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": user}}],
        "current-context": name,
    }
