"""The API of `ome.io/v1beta1`: its kinds, how to read them and what can be wrong with them."""

from ome.api.acceleratorclass import AcceleratorClass
from ome.api.base import API_VERSION, GROUP, ApiObject
from ome.api.basemodel import BaseModel, ClusterBaseModel
from ome.api.inferenceservice import InferenceService
from ome.api.parsing import KINDS, InvalidObject, dump, parse
from ome.api.problems import ObjectRef, OmeError, Problem
from ome.api.servingruntime import ClusterServingRuntime, ServingRuntime
from ome.api.unknown import unknown_fields

__all__ = [
    "API_VERSION",
    "GROUP",
    "KINDS",
    "AcceleratorClass",
    "ApiObject",
    "BaseModel",
    "ClusterBaseModel",
    "ClusterServingRuntime",
    "InferenceService",
    "InvalidObject",
    "ObjectRef",
    "OmeError",
    "Problem",
    "ServingRuntime",
    "dump",
    "parse",
    "unknown_fields",
]
