"""Where snapshots come from: files."""

from ome.sources.documents import UnreadableInput
from ome.sources.files import read_paths
from ome.sources.load import Loaded, load

__all__ = ["Loaded", "UnreadableInput", "load", "read_paths"]
