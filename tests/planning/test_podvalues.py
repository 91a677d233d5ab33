"""Values that Kubernetes takes only some of."""

from __future__ import annotations

from typing import Any

import pytest

from ome.planning.podchecks import check_pod

Json = dict[str, Any]


def pod(container: Json | None = None, **fields: Any) -> Json:
    return {"containers": [{"name": "c", "image": "i", **(container or {})}], **fields}


PROBE = {"livenessProbe": {"httpGet": {"path": "/x"}}}
EFFECT = {"effect": "NoExecute"}
CASES: list[tuple[Json, list[str]]] = [
    (pod(restartPolicy="Always", dnsPolicy="Default", preemptionPolicy="Never"), []),
    (
        pod(restartPolicy="OnFailure"),
        ['restartPolicy: "OnFailure", which'],
    ),
    (pod(dnsPolicy="clusterFirst"), ['dnsPolicy: "clusterFirst", which']),
    (pod(dnsPolicy="None"), ["dnsConfig.nameservers: needs a name server"]),
    (pod(dnsPolicy="None", dnsConfig={"nameservers": ["10.0.0.1"]}), []),
    (pod({"imagePullPolicy": "Sometimes"}), ['containers[c].imagePullPolicy: "Sometimes", which']),
    (
        pod(topologySpreadConstraints=[{"whenUnsatisfiable": "Maybe", "maxSkew": 0}]),
        [
            'topologySpreadConstraints[0].whenUnsatisfiable: "Maybe", which',
            "topologySpreadConstraints[0].maxSkew: maxSkew is 0",
        ],
    ),
    (pod(tolerations=[{"operator": "Exists"}, {"key": "k", "value": "v"}]), []),
    (pod(tolerations=[{"key": "k", "operator": "Has"}]), ['tolerations[0].operator: "Has", which']),
    (pod(tolerations=[{"key": "k", "effect": "No"}]), ['tolerations[0].effect: "No", which']),
    (
        pod(tolerations=[{"key": "k", "operator": "Exists", "value": "v"}]),
        ['tolerations[0].value: has "v"'],
    ),
    (pod(tolerations=[{"value": "v"}]), ["tolerations[0].key: needs operator Exists"]),
    (
        pod(tolerations=[{"key": "k", "tolerationSeconds": 5}]),
        ["tolerationSeconds: goes with effect NoExecute"],
    ),
    (pod(tolerations=[{"key": "k", "tolerationSeconds": 5, **EFFECT}]), []),
    (pod({"ports": [{"containerPort": 80, "hostPort": 81}]}), []),
    (pod(PROBE), ["containers[c].livenessProbe.httpGet.port: has no port"]),
    (pod({"livenessProbe": {}}), ["containers[c].livenessProbe: has no handler"]),
    (pod(nodeSelector={"a/b": "x", "c": ""}), []),
    (pod(nodeSelector={"bad key!": "x"}), ["nodeSelector[bad key!]: is no key of labels"]),
    (pod(nodeSelector={"a": "x y"}), ['nodeSelector[a]: "x y" is no label value']),
    (pod(tolerations=[{"key": "bad key"}]), ["tolerations[0].key: is no key of a taint"]),
    (
        pod({"ports": [{"containerPort": 80, "hostPort": 81}]}, hostNetwork=True),
        ["containers[c].ports[80].hostPort: can't have hostPort 81"],
    ),
    (pod({"ports": [{"containerPort": 80, "hostPort": 80}]}, hostNetwork=True), []),
]


@pytest.mark.parametrize(("given", "expected"), CASES)
def test_values(given: Json, expected: list[str]) -> None:
    found = check_pod(given)
    assert len(found) == len(expected), found
    for problem, text in zip(found, expected, strict=True):
        path, _, message = text.partition(": ")
        assert problem.path.endswith(path)
        assert message in problem.message
        assert problem.fix
