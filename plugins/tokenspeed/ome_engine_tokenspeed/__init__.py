"""The TokenSpeed engine for OME."""

__version__ = "0.1.0"
