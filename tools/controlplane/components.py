"""The command line of every component, and the identity that it has towards the API server."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from controlplane.instance import Instance
from controlplane.pki import Authority, private_key, write_private

__all__ = ["CLIENTS", "MANIFESTS", "Ports", "commands", "free_ports", "write_credentials"]

MANIFESTS = Path(__file__).parent / "manifests"

# Who each client of the API server is: user and groups. The roles of Kubernetes' own are built in.
CLIENTS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "admin": ("admin", ("system:masters",)),
    "kube-controller-manager": ("system:kube-controller-manager", ()),
    "kube-scheduler": ("system:kube-scheduler", ()),
    "kwok": ("controlplane:kwok", ()),
}


@dataclass(frozen=True)
class Ports:
    """Ports on the loopback interface."""

    etcd: int
    peer: int
    apiserver: int

    @property
    def server(self) -> str:
        """The address of the API server."""
        return f"https://127.0.0.1:{self.apiserver}"


def free_ports() -> Ports:
    """Three ports that are free now; another process can still take one before it is bound."""
    with socket.socket() as first, socket.socket() as second, socket.socket() as third:
        numbers: list[int] = []
        for each in (first, second, third):
            each.bind(("127.0.0.1", 0))
            numbers.append(each.getsockname()[1])
    return Ports(*numbers)


def write_credentials(instance: Instance, ports: Ports) -> None:
    """Write certificates, the key of service accounts and the kubeconfigs of all clients."""
    instance.pki.mkdir(mode=0o700, exist_ok=True)
    authority = Authority.new()
    authority.pair.write(instance.pki, "ca")
    authority.server("etcd").write(instance.pki, "etcd")
    authority.server("kubernetes", "kubernetes.default.svc").write(instance.pki, "apiserver")
    write_private(instance.pki / "service-accounts.key", private_key())
    for client, (user, groups) in CLIENTS.items():
        path = instance.kubeconfig(client)
        instance.write_kubeconfig(path, ports.server, user, authority.user(user, groups))


def commands(instance: Instance, ports: Ports) -> dict[str, list[str]]:
    """The arguments of every component by the program's name, in the order in which they start."""
    pki = instance.pki
    etcd, peer = f"https://127.0.0.1:{ports.etcd}", f"https://127.0.0.1:{ports.peer}"
    clients = [f"--{way}kubeconfig" for way in ("", "authentication-", "authorization-")]
    return {
        "etcd": [
            "--name=default",
            f"--data-dir={instance.data}",
            f"--listen-client-urls={etcd}",
            f"--advertise-client-urls={etcd}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            # Nobody else on this machine reads the Secrets of a test.
            "--client-cert-auth",
            "--peer-client-cert-auth",
            *(f"--{who}trusted-ca-file={pki / 'ca.crt'}" for who in ("", "peer-")),
            *(f"--{who}cert-file={pki / 'etcd.crt'}" for who in ("", "peer-")),
            *(f"--{who}key-file={pki / 'etcd.key'}" for who in ("", "peer-")),
            # The data don't outlive the process.
            "--unsafe-no-fsync",
            "--log-level=warn",
        ],
        "kube-apiserver": [
            f"--etcd-servers={etcd}",
            f"--etcd-cafile={pki / 'ca.crt'}",
            f"--etcd-certfile={pki / 'etcd.crt'}",
            f"--etcd-keyfile={pki / 'etcd.key'}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            # A loopback address is refused as an endpoint of the Service `kubernetes`.
            "--endpoint-reconciler-type=none",
            f"--secure-port={ports.apiserver}",
            f"--cert-dir={pki}",
            f"--tls-cert-file={pki / 'apiserver.crt'}",
            f"--tls-private-key-file={pki / 'apiserver.key'}",
            f"--client-ca-file={pki / 'ca.crt'}",
            "--authorization-mode=Node,RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={pki / 'service-accounts.key'}",
            f"--service-account-signing-key-file={pki / 'service-accounts.key'}",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--allow-privileged=true",
            "--profiling=false",
        ],
        "kube-controller-manager": [
            *(f"{flag}={instance.kubeconfig('kube-controller-manager')}" for flag in clients),
            "--use-service-account-credentials=true",
            f"--service-account-private-key-file={pki / 'service-accounts.key'}",
            f"--root-ca-file={pki / 'ca.crt'}",
            f"--cluster-signing-cert-file={pki / 'ca.crt'}",
            f"--cluster-signing-key-file={pki / 'ca.key'}",
            "--leader-elect=false",
            "--secure-port=0",
            "--profiling=false",
        ],
        "kube-scheduler": [
            *(f"{flag}={instance.kubeconfig('kube-scheduler')}" for flag in clients),
            "--leader-elect=false",
            "--secure-port=0",
            "--profiling=false",
        ],
        "kwok": [
            f"--kubeconfig={instance.kubeconfig('kwok')}",
            f"--config={MANIFESTS / 'kwok.yaml'}",
            "--manage-all-nodes=true",
            "--node-lease-duration-seconds=40",
            "--node-ip=127.0.0.1",
            "--cidr=10.244.0.0/16",
        ],
    }
