"""RBAC is on, and admission webhooks are reachable on the loopback interface."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from controlplane import ControlPlane, Kubectl


def test_users_may_do_what_they_are_granted(
    control_plane: ControlPlane, kubectl: Kubectl, namespace: str
) -> None:
    alice = control_plane.as_user("alice", ["dev", "on-call"])
    assert alice.refused("get", "pods", "-n", namespace) == (
        'Error from server (Forbidden): pods is forbidden: User "alice" cannot list resource "pods" '
        f'in API group "" in the namespace "{namespace}"\n'
    )
    kubectl(
        "create", "rolebinding", "view", "--clusterrole=view", "--group=on-call", "-n", namespace
    )
    assert alice("get", "pods", "-n", namespace, "-o", "name") == ""
    groups = alice.json("auth", "whoami")["status"]["userInfo"]["groups"]
    assert groups == ["dev", "on-call", "system:authenticated"]


def test_components_have_identities_of_their_own(control_plane: ControlPlane) -> None:
    names = {
        client: Kubectl(control_plane.instance.kubeconfig(client)).json("auth", "whoami")
        for client in ("kube-controller-manager", "kube-scheduler", "kwok")
    }
    assert {client: each["status"]["userInfo"]["username"] for client, each in names.items()} == {
        "kube-controller-manager": "system:kube-controller-manager",
        "kube-scheduler": "system:kube-scheduler",
        "kwok": "controlplane:kwok",
    }


def test_tokens_of_service_accounts(
    control_plane: ControlPlane, kubectl: Kubectl, namespace: str
) -> None:
    kubectl("create", "serviceaccount", "ome", "-n", namespace)
    token = kubectl("create", "token", "ome", "-n", namespace).strip()
    ours = ("--kubeconfig=/dev/null", f"--server={control_plane.server}")
    trust = f"--certificate-authority={control_plane.authority}"
    who = kubectl(
        "auth",
        "whoami",
        *ours,
        trust,
        f"--token={token}",
        "-o",
        "jsonpath={.status.userInfo.username}",
    )
    assert who == f"system:serviceaccount:{namespace}:ome"


class _Refuse(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        review = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status = {"message": "not today", "reason": "Forbidden", "code": 403}
        response = {"uid": review["request"]["uid"], "allowed": False, "status": status}
        body = json.dumps(
            {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}
        )
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def webhook(control_plane: ControlPlane, tmp_path: Path) -> Iterator[str]:
    """The address of a webhook that refuses everything."""
    control_plane.serving_pair().write(tmp_path, "webhook")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "webhook.crt", tmp_path / "webhook.key")
    with HTTPServer(("127.0.0.1", 0), _Refuse) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"https://127.0.0.1:{server.server_port}/validate"
        server.shutdown()
        thread.join()


def test_a_webhook_refuses(
    control_plane: ControlPlane, kubectl: Kubectl, namespace: str, webhook: str
) -> None:
    authority = base64.b64encode(control_plane.authority.read_bytes()).decode()
    rule = {
        "apiGroups": [""],
        "apiVersions": ["v1"],
        "operations": ["CREATE"],
        "resources": ["configmaps"],
    }
    hook = {
        "name": "refuse.example.com",
        "clientConfig": {"url": webhook, "caBundle": authority},
        "rules": [rule],
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
    }
    configuration = {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": namespace},
        "webhooks": [hook],
    }
    kubectl("create", "-f", "-", stdin=json.dumps(configuration))
    try:
        complaint = ""
        # The API server learns of the configuration from a watch.
        for number in range(200):
            done = kubectl.run("create", "configmap", f"c{number}", "-n", namespace)
            complaint = done.stderr
            if done.returncode:
                break
        assert 'admission webhook "refuse.example.com" denied the request: not today' in complaint
    finally:
        kubectl("delete", "validatingwebhookconfiguration", namespace)
