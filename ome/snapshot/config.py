"""The controller's configuration: the ConfigMap `inferenceservice-config`, parsed once per change.

Each key holds one JSON document as text; unknown members are ignored. Source: OME "Configure the
controller" document (v1.3). Every setting has the value that holds when nothing is configured.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from ome.api.problems import ObjectRef, OmeError, Problem
from ome.api.scalars import name_faults

__all__ = [
    "CONFIG_NAME",
    "Config",
    "IngressConfig",
    "InvalidConfig",
    "is_bound",
    "parse_config",
]

CONFIG_NAME: Final = "inferenceservice-config"
_COMPONENTS: Final = ("engine", "decoder", "router")


_FIELD: Final = re.compile(r"\{\{-?\s*\.(?P<field>Name|Namespace|IngressDomain)\s*-?\}\}")


class InvalidConfig(OmeError):
    """The ConfigMap can't be used."""


@dataclass(frozen=True, slots=True)
class IngressConfig:
    """The parts of `ingress` that rendering reads."""

    creation_disabled: bool = True
    domain: str = "svc.cluster.local"
    domain_template: str = "{{ .Name }}.{{ .Namespace }}.{{ .IngressDomain }}"
    url_scheme: str = "http"

    def host(self, name: str, namespace: str) -> str:
        """The host name of a service or a component, by the template."""
        values = {"Name": name, "Namespace": namespace, "IngressDomain": self.domain}
        return _FIELD.sub(lambda found: values[found["field"]], self.domain_template)


@dataclass(frozen=True, slots=True)
class Config:
    """Defaults for rendering; replica counts and seconds are None where nothing is configured."""

    min_replicas: int | None = None
    max_replicas: Mapping[str, int] = field(default_factory=dict)
    termination_grace_seconds: int | None = None
    accelerator_resources: tuple[str, ...] = ("nvidia.com/gpu",)
    raw_pdb: Mapping[str, Any] | None = None
    pod_monitor: Mapping[str, Any] = field(default_factory=dict)
    ingress: IngressConfig = IngressConfig()


_TEMPLATE_MARK: Final = re.compile(r"\{\{.*?\}\}|\{\{|\}\}", re.DOTALL)
# Counts and seconds are numbers of 32 bits.
_LARGEST: Final = 2**31 - 1
_PERCENT: Final = re.compile(r"(100|[1-9]?[0-9])%", re.ASCII)


def is_bound(value: Any) -> bool:
    """Whether a value is a bound of a disruption budget: a count, or a percentage."""
    if isinstance(value, int) and not isinstance(value, bool):
        return 0 <= value <= _LARGEST
    return isinstance(value, str) and bool(_PERCENT.fullmatch(value))


def parse_config(config_map: Mapping[str, Any]) -> Config:
    """Read the ConfigMap. Raises InvalidConfig with every fault, each naming its key."""
    metadata = config_map.get("metadata") or {}
    ref = ObjectRef(
        "ConfigMap", metadata.get("namespace") or "", metadata.get("name") or CONFIG_NAME
    )
    problems: list[Problem] = []
    data: Any = config_map.get("data") or {}
    if not isinstance(data, dict):
        message = "data must be an object of JSON texts by key"
        raise InvalidConfig(Problem("ConfigInvalid", message, ref, path="data"))
    settings: dict[str, Any] = {}
    for key, read in _READERS.items():
        text = data.get(key)
        if text is None:
            continue
        try:
            settings.update(read(_load(key, text)))
        except _Fault as fault:
            problems.append(Problem("ConfigInvalid", str(fault), ref, path=f"data.{key}"))
    if problems:
        raise InvalidConfig(*problems)
    return Config(**settings)


class _Fault(Exception):
    pass


def _load(key: str, text: Any) -> Any:
    try:
        return json.loads(text)
    except (TypeError, ValueError) as error:
        raise _Fault(f"unable to parse {key} config json: {error}") from None
    except RecursionError:
        raise _Fault(f"unable to parse {key} config json: it is nested too deeply") from None


def _object(key: str, value: Any) -> Mapping[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _Fault(f"invalid {key} config, it must be a JSON object")
    return value


def _positive(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise _Fault(f"invalid deploy config, {name} must be an integer")
    if value <= 0:
        raise _Fault(f"invalid deploy config, {name} must be > 0, got {value}")
    if value > _LARGEST:
        raise _Fault(f"invalid deploy config, {name} must be at most {_LARGEST}, got {value}")
    return value


def _read_deploy(value: Any) -> dict[str, Any]:
    deploy = _object("deploy", value)
    mode = deploy.get("defaultDeploymentMode")
    if mode not in (None, "", "RawDeployment"):
        raise _Fault(
            f"invalid deploy config, defaultDeploymentMode must be RawDeployment, not {mode}"
        )
    settings: dict[str, Any] = {}
    replicas = _object("deploy", deploy.get("replicas"))
    if (least := replicas.get("defaultMinReplicas")) is not None:
        settings["min_replicas"] = _positive("replicas.defaultMinReplicas", least)
    most = _object("deploy", replicas.get("defaultMaxReplicas"))
    settings["max_replicas"] = {
        name: _positive(f"replicas.defaultMaxReplicas.{name}", most[name])
        for name in _COMPONENTS
        if most.get(name) is not None
    }
    if (grace := deploy.get("terminationGracePeriodSeconds")) is not None:
        settings["termination_grace_seconds"] = _positive("terminationGracePeriodSeconds", grace)
    return settings


def _read_accelerators(value: Any) -> dict[str, Any]:
    if value is None or value == []:
        return {}
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise _Fault("invalid acceleratorResources config, it must be a list of resource names")
    return {"accelerator_resources": tuple(value)}


def _read_pdb(value: Any) -> dict[str, Any]:
    """Strict, unlike the others: unknown members and a pair of bounds are refused."""
    budget = _object("podDisruptionBudget", value)
    for mode, policy in budget.items():
        if mode not in ("rawDeployment", "omeNative"):
            raise _Fault(f'invalid podDisruptionBudget config, unknown member "{mode}"')
        keys = set(_object("podDisruptionBudget", policy))
        bound = next(iter(policy.values()), None) if policy else None
        if len(keys) == 1 and keys <= {"minAvailable", "maxUnavailable"} and not is_bound(bound):
            raise _Fault(
                f"invalid podDisruptionBudget config, {mode}.{min(keys)} must be a non-negative integer "
                "or a percentage from 0% to 100%"
            )
        if len(keys) != 1 or not keys <= {"minAvailable", "maxUnavailable"}:
            raise _Fault(
                f"invalid podDisruptionBudget config, {mode}: "
                "exactly one of minAvailable or maxUnavailable must be set"
            )
    return {"raw_pdb": budget.get("rawDeployment")}


def _read_ingress(value: Any) -> dict[str, Any]:
    ingress = _object("ingress", value)
    default = IngressConfig()
    for name, kind in (
        ("disableIngressCreation", bool),
        ("ingressDomain", str),
        ("domainTemplate", str),
        ("urlScheme", str),
    ):
        if ingress.get(name) is not None and not isinstance(ingress[name], kind):
            what = "true or false" if kind is bool else "a string"
            raise _Fault(f"invalid ingress config, {name} must be {what}")
    template = ingress.get("domainTemplate") or default.domain_template
    _check_template(template)
    return {
        "ingress": IngressConfig(
            creation_disabled=default.creation_disabled
            if ingress.get("disableIngressCreation") is None
            else ingress["disableIngressCreation"],
            domain=ingress.get("ingressDomain") or default.domain,
            domain_template=template,
            url_scheme=ingress.get("urlScheme") or default.url_scheme,
        )
    }


def _check_template(template: str) -> None:
    """A template holds the known placeholders, and host names come out of it."""
    unknown = _TEMPLATE_MARK.search(_FIELD.sub("", template))
    if unknown is not None:
        raise _Fault(
            f"invalid ingress config, domainTemplate: {unknown[0]} is none of {{{{ .Name }}}}, "
            "{{ .Namespace }} and {{ .IngressDomain }}"
        )
    if name_faults(_FIELD.sub("a", template)):
        raise _Fault(
            "invalid ingress config, domainTemplate must make host names: lower case letters, digits, "
            "'-' and '.' beside placeholders"
        )


def _read_pod_monitor(value: Any) -> dict[str, Any]:
    monitor = _object("podMonitor", value)
    labels = _object("podMonitor", monitor.get("labels"))
    if not all(isinstance(text, str) for text in labels.values()):
        raise _Fault("invalid podMonitor config, labels must be strings")
    for name in ("relabelings", "metricRelabelings"):
        rules = monitor.get(name)
        if rules is not None and not (
            isinstance(rules, list) and all(isinstance(rule, dict) for rule in rules)
        ):
            raise _Fault(f"invalid podMonitor config, {name} must be a list of objects")
    return {"pod_monitor": monitor}


_READERS: Final[Mapping[str, Callable[[Any], dict[str, Any]]]] = {
    "deploy": _read_deploy,
    "acceleratorResources": _read_accelerators,
    "podDisruptionBudget": _read_pdb,
    "podMonitor": _read_pod_monitor,
    "ingress": _read_ingress,
}
