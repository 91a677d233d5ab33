"""The configuration: what is read, and every fault's text."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ome.snapshot import Config, IngressConfig, InvalidConfig, parse_config


def config_map(**data: Any) -> dict[str, Any]:
    texts = {
        key: value if isinstance(value, str) else json.dumps(value) for key, value in data.items()
    }
    return {"metadata": {"name": "inferenceservice-config", "namespace": "ome"}, "data": texts}


def test_an_empty_configuration_is_the_default_one() -> None:
    assert parse_config(config_map()) == Config()
    assert parse_config({"data": None}) == Config()
    assert parse_config(config_map(deploy={}, ingress={}, acceleratorResources=[])) == Config()


def test_every_setting() -> None:
    parsed = parse_config(
        config_map(
            deploy={
                "defaultDeploymentMode": "RawDeployment",
                "replicas": {
                    "defaultMinReplicas": 1,
                    "defaultMaxReplicas": {"engine": 3, "router": 2},
                },
                "terminationGracePeriodSeconds": 600,
                "unknown": "ignored",
            },
            acceleratorResources=["amd.com/gpu"],
            podDisruptionBudget={"rawDeployment": {"maxUnavailable": 1}},
            podMonitor={"labels": {"a": "b"}},
            ingress={
                "disableIngressCreation": False,
                "ingressDomain": "example.com",
                "domainTemplate": "{{ .Name }}-{{.Namespace}}.{{ .IngressDomain }}",
            },
            somethingElse="not even JSON",
        )
    )
    assert parsed == Config(
        min_replicas=1,
        max_replicas={"engine": 3, "router": 2},
        termination_grace_seconds=600,
        accelerator_resources=("amd.com/gpu",),
        raw_pdb={"maxUnavailable": 1},
        pod_monitor={"labels": {"a": "b"}},
        ingress=IngressConfig(
            creation_disabled=False,
            domain="example.com",
            domain_template="{{ .Name }}-{{.Namespace}}.{{ .IngressDomain }}",
        ),
    )
    assert parsed.ingress.host("chat", "demo") == "chat-demo.example.com"
    assert IngressConfig().host("chat", "demo") == "chat.demo.svc.cluster.local"


DEPLOY = "invalid deploy config, "
TEMPLATE = "invalid ingress config, domainTemplate"
KNOWN = "{{ .Name }}, {{ .Namespace }} and {{ .IngressDomain }}"
BUDGET = "invalid podDisruptionBudget config, "


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"deploy": "{"}, "unable to parse deploy config json: Expecting property name"),
        ({"deploy": "[" * 100_000}, "unable to parse deploy config json: it is nested too deeply"),
        ({"deploy": []}, "invalid deploy config, it must be a JSON object"),
        (
            {"deploy": {"replicas": {"defaultMinReplicas": 0}}},
            DEPLOY + "replicas.defaultMinReplicas must be > 0, got 0",
        ),
        (
            {"deploy": {"replicas": {"defaultMaxReplicas": {"engine": -1}}}},
            DEPLOY + "replicas.defaultMaxReplicas.engine must be > 0, got -1",
        ),
        (
            {"deploy": '{"terminationGracePeriodSeconds": 2147483648}'},
            DEPLOY + "terminationGracePeriodSeconds must be at most 2147483647, got 2147483648",
        ),
        (
            {"deploy": {"terminationGracePeriodSeconds": "600"}},
            DEPLOY + "terminationGracePeriodSeconds must be an integer",
        ),
        (
            {"deploy": {"defaultDeploymentMode": "Serverless"}},
            DEPLOY + "defaultDeploymentMode must be RawDeployment, not Serverless",
        ),
        (
            {"acceleratorResources": "nvidia.com/gpu"},
            "unable to parse acceleratorResources config json: Expecting value",
        ),
        (
            {"acceleratorResources": [1]},
            "invalid acceleratorResources config, it must be a list of resource names",
        ),
        (
            {"podDisruptionBudget": {"rawDeployment": {"maxUnavailable": "150%"}}},
            BUDGET + "rawDeployment.maxUnavailable must be a non-negative integer",
        ),
        ({"podMonitor": {"labels": "x"}}, "invalid podMonitor config, it must be a JSON object"),
        ({"podMonitor": {"labels": {"a": 1}}}, "invalid podMonitor config, labels must be strings"),
        (
            {"podMonitor": {"relabelings": -1}},
            "invalid podMonitor config, relabelings must be a list of objects",
        ),
        (
            {"ingress": {"disableIngressCreation": "false"}},
            "invalid ingress config, disableIngressCreation must be true or false",
        ),
        (
            {"ingress": {"domainTemplate": ["a"]}},
            "invalid ingress config, domainTemplate must be a string",
        ),
        (
            {"ingress": {"domainTemplate": "{{ .Name }}.{{ .Labels.team }}.example.com"}},
            TEMPLATE + ": {{ .Labels.team }} is none of " + KNOWN,
        ),
        ({"ingress": {"domainTemplate": "{{ .Name }.a"}}, TEMPLATE + ": {{ is none of " + KNOWN),
        ({"ingress": {"domainTemplate": ".Name }}.a"}}, TEMPLATE + ": }} is none of " + KNOWN),
        (
            {"ingress": {"domainTemplate": "{{ .Name }}/{{ .Namespace }}"}},
            TEMPLATE + " must make host names: lower case letters, digits, '-' and '.'",
        ),
        ({"podDisruptionBudget": {"raw": {}}}, BUDGET + 'unknown member "raw"'),
        (
            {"podDisruptionBudget": {"rawDeployment": {"minAvailable": 1, "maxUnavailable": 1}}},
            BUDGET + "rawDeployment: exactly one of minAvailable or maxUnavailable must be set",
        ),
    ],
)
def test_faults(data: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        parse_config(config_map(**data))
    (problem,) = caught.value.problems
    assert problem.message.startswith(message)
    assert str(problem).startswith(
        f"ConfigMap/ome/inferenceservice-config: data.{next(iter(data))}: "
    )


def test_every_fault_is_reported_at_once() -> None:
    with pytest.raises(InvalidConfig) as caught:
        parse_config(config_map(deploy="{", ingress="["))
    assert [problem.path for problem in caught.value.problems] == ["data.deploy", "data.ingress"]
