"""What engine plugins are built from: command lines as data, and rules over them.

A plugin describes its server (`Server`) and its flags (`FlagTable`, `ParserRules`); detection, the
dialect, the view of a command line and the common findings follow. See docs/plugins.md.
"""

from ome.engines.kit.commandline import CommandLine, Flag, read_command_line
from ome.engines.kit.detect import detect, image_version
from ome.engines.kit.flags import (
    AmbiguousFlag,
    Exclusive,
    FlagTable,
    Hints,
    Option,
    ParserRules,
    Release,
    read_table,
)
from ome.engines.kit.geometry import cache_bytes, fraction, product, size, spread
from ome.engines.kit.launch import COMPUTED, WRAPPED, Launch, read_launch
from ome.engines.kit.pods import (
    PROBES,
    accelerators,
    is_follower,
    loopback,
    opaque,
    probe_handlers,
    probe_ports,
    served_name,
    shared_memory,
    unversioned,
)
from ome.engines.kit.profiles import PROMETHEUS, http_probes
from ome.engines.kit.server import CONFIGURED, Server
from ome.engines.kit.spelling import (
    Rule,
    ambiguous,
    deprecated,
    exclusive,
    misspelt,
    prefixes,
    repeated,
    unknown,
)
from ome.engines.kit.versions import Order, order_of

__all__ = [
    "COMPUTED",
    "CONFIGURED",
    "PROBES",
    "PROMETHEUS",
    "WRAPPED",
    "AmbiguousFlag",
    "CommandLine",
    "Exclusive",
    "Flag",
    "FlagTable",
    "Hints",
    "Launch",
    "Option",
    "Order",
    "ParserRules",
    "Release",
    "Rule",
    "Server",
    "accelerators",
    "ambiguous",
    "cache_bytes",
    "deprecated",
    "detect",
    "exclusive",
    "fraction",
    "http_probes",
    "image_version",
    "is_follower",
    "loopback",
    "misspelt",
    "opaque",
    "order_of",
    "prefixes",
    "probe_handlers",
    "probe_ports",
    "product",
    "read_command_line",
    "read_launch",
    "read_table",
    "repeated",
    "served_name",
    "shared_memory",
    "size",
    "spread",
    "unknown",
    "unversioned",
]
