"""A real Kubernetes control plane on this machine, for tests.

kube-apiserver, kube-controller-manager, kube-scheduler and etcd are what they are in a cluster, built from
pinned Go modules; nodes and kubelets are simulated by kwok. See README.md.
"""

from controlplane.errors import ControlPlaneError
from controlplane.kubectl import Kubectl
from controlplane.plane import ControlPlane, down, up

__all__ = ["ControlPlane", "ControlPlaneError", "Kubectl", "down", "up"]
