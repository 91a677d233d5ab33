"""Light checks of Kubernetes pod parts that stay plain JSON.

A container or a volume is merged and rendered as it stands, so it is kept as the caller's own dict:
its shape is only checked here, to refuse at the door what no later step could use. Fields that are
not named here pass unseen. Required fields are those of the OME API reference v1.3 (spec: api.md
4.9); a null counts as an absent field, as it does for the API server.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Final, TypeAlias

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema
from pydantic_core import core_schema as core

from ome.api.argspatch import ARGS_PATCH, check_operation
from ome.api.scalars import check_int_or_string, check_resource_quantity

__all__ = [
    "POD_PART",
    "Affinity",
    "Container",
    "DeploymentStrategy",
    "EphemeralContainer",
    "HostAlias",
    "ImagePullSecret",
    "MetricSpec",
    "NamedRunner",
    "NodeAffinity",
    "PodDNSConfig",
    "PodOS",
    "PodReadinessGate",
    "PodResourceClaim",
    "PodSchedulingGate",
    "PodSecurityContext",
    "Runner",
    "ScalingBehavior",
    "Toleration",
    "TopologySpreadConstraint",
    "Volume",
]

POD_PART: Final = "x-pod-part"
"""Schema keyword that stands for a Kubernetes definition until it is expanded."""

_text = core.str_schema(strict=True)
_bool = core.bool_schema(strict=True)
_int32 = core.int_schema(strict=True, ge=-(2**31), le=2**31 - 1)
_int64 = core.int_schema(strict=True, ge=-(2**63), le=2**63 - 1)
_object = core.dict_schema(core.str_schema(strict=True), core.any_schema(), strict=True)
_text_map = core.dict_schema(core.str_schema(strict=True), _text, strict=True)
_int_or_string = core.no_info_plain_validator_function(check_int_or_string)
_quantities = core.dict_schema(
    core.str_schema(strict=True),
    core.no_info_plain_validator_function(check_resource_quantity),
    strict=True,
)


def _list(item: CoreSchema) -> CoreSchema:
    return core.list_schema(item, strict=True)


def _shape(required: dict[str, CoreSchema], optional: dict[str, CoreSchema]) -> CoreSchema:
    fields = {name: core.typed_dict_field(each, required=True) for name, each in required.items()}
    for name, each in optional.items():
        fields[name] = core.typed_dict_field(core.nullable_schema(each), required=False)
    return core.typed_dict_schema(fields, strict=True, extra_behavior="allow")


def _keep(value: dict[str, Any], check: Callable[[Any], Any]) -> dict[str, Any]:
    check(value)
    return value


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Annotation: a Kubernetes part, by its definition's name, and the shape to check it by.

    The validated value is the caller's dict itself, unknown fields and key order included.
    """

    definition: str
    shape: CoreSchema

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return core.no_info_wrap_validator_function(
            _keep, self.shape, serialization=core.simple_ser_schema("any")
        )

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {POD_PART: self.definition}


_named = _shape({"name": _text}, {})
_probe = _shape(
    {},
    {
        "initialDelaySeconds": _int32,
        "timeoutSeconds": _int32,
        "periodSeconds": _int32,
        "successThreshold": _int32,
        "failureThreshold": _int32,
        "terminationGracePeriodSeconds": _int64,
        "exec": _shape({}, {"command": _list(_text)}),
        "grpc": _shape({}, {"port": _int32, "service": _text}),
        "httpGet": _shape(
            {}, {"port": _int_or_string, "path": _text, "host": _text, "scheme": _text}
        ),
        "tcpSocket": _shape({}, {"port": _int_or_string, "host": _text}),
    },
)
_container_fields: Final[dict[str, CoreSchema]] = {
    "image": _text,
    "imagePullPolicy": _text,
    "command": _list(_text),
    "args": _list(_text),
    ARGS_PATCH: _list(core.no_info_plain_validator_function(check_operation)),
    "workingDir": _text,
    "env": _list(_shape({"name": _text}, {"value": _text, "valueFrom": _object})),
    "envFrom": _list(_object),
    "ports": _list(
        _shape(
            {"containerPort": _int32},
            {"name": _text, "protocol": _text, "hostPort": _int32, "hostIP": _text},
        )
    ),
    "resources": _shape(
        {}, {"requests": _quantities, "limits": _quantities, "claims": _list(_named)}
    ),
    "volumeMounts": _list(
        _shape(
            {"name": _text, "mountPath": _text},
            {"subPath": _text, "subPathExpr": _text, "readOnly": _bool, "mountPropagation": _text},
        )
    ),
    "volumeDevices": _list(_shape({"name": _text, "devicePath": _text}, {})),
    "livenessProbe": _probe,
    "readinessProbe": _probe,
    "startupProbe": _probe,
    "lifecycle": _object,
    "securityContext": _object,
    "resizePolicy": _list(_object),
    "restartPolicy": _text,
    "terminationMessagePath": _text,
    "terminationMessagePolicy": _text,
    "stdin": _bool,
    "stdinOnce": _bool,
    "tty": _bool,
}
_container = _shape({"name": _text}, _container_fields)
_unnamed_container = _shape({}, {"name": _text, **_container_fields})
_volume = _shape(
    {"name": _text},
    {
        "configMap": _object,
        "downwardAPI": _object,
        "emptyDir": _object,
        "ephemeral": _object,
        "hostPath": _object,
        "image": _object,
        "persistentVolumeClaim": _object,
        "projected": _object,
        "secret": _object,
    },
)
_toleration = _shape(
    {},
    {
        "key": _text,
        "operator": _text,
        "value": _text,
        "effect": _text,
        "tolerationSeconds": _int64,
    },
)
_spread = _shape(
    {"maxSkew": _int32, "topologyKey": _text, "whenUnsatisfiable": _text},
    {"labelSelector": _object, "minDomains": _int32, "matchLabelKeys": _list(_text)},
)
_affinity = _shape(
    {}, {"nodeAffinity": _object, "podAffinity": _object, "podAntiAffinity": _object}
)
_host_alias = _shape({"ip": _text}, {"hostnames": _list(_text)})

Json: TypeAlias = dict[str, Any]
Affinity: TypeAlias = Annotated[Json, Part("Affinity", _affinity)]
Container: TypeAlias = Annotated[Json, Part("Container", _container)]
DeploymentStrategy: TypeAlias = Annotated[
    Json, Part("DeploymentStrategy", _shape({}, {"type": _text, "rollingUpdate": _object}))
]
EphemeralContainer: TypeAlias = Annotated[Json, Part("EphemeralContainer", _container)]
HostAlias: TypeAlias = Annotated[Json, Part("HostAlias", _host_alias)]
ImagePullSecret: TypeAlias = Annotated[
    Json, Part("LocalObjectReference", _shape({}, {"name": _text}))
]
MetricSpec: TypeAlias = Annotated[Json, Part("MetricSpec", _shape({"type": _text}, {}))]
NamedRunner: TypeAlias = Annotated[Json, Part("Container", _container)]
NodeAffinity: TypeAlias = Annotated[Json, Part("NodeAffinity", _object)]
PodDNSConfig: TypeAlias = Annotated[Json, Part("PodDNSConfig", _object)]
PodOS: TypeAlias = Annotated[Json, Part("PodOS", _named)]
PodReadinessGate: TypeAlias = Annotated[
    Json, Part("PodReadinessGate", _shape({"conditionType": _text}, {}))
]
PodResourceClaim: TypeAlias = Annotated[Json, Part("PodResourceClaim", _named)]
PodSchedulingGate: TypeAlias = Annotated[Json, Part("PodSchedulingGate", _named)]
PodSecurityContext: TypeAlias = Annotated[Json, Part("PodSecurityContext", _object)]
Runner: TypeAlias = Annotated[Json, Part("Container", _unnamed_container)]
"""A runner whose `name` may be left out: only directly under a component of an InferenceService."""
ScalingBehavior: TypeAlias = Annotated[
    Json,
    Part("HorizontalPodAutoscalerBehavior", _shape({}, {"scaleUp": _object, "scaleDown": _object})),
]
Toleration: TypeAlias = Annotated[Json, Part("Toleration", _toleration)]
TopologySpreadConstraint: TypeAlias = Annotated[Json, Part("TopologySpreadConstraint", _spread)]
Volume: TypeAlias = Annotated[Json, Part("Volume", _volume)]
