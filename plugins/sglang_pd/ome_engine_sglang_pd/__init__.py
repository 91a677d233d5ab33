"""Prefill-decode serving with SGLang for OME, as a preset."""

__version__ = "0.1.0"
