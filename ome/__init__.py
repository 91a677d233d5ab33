"""OME: serve large language models on Kubernetes, with engines as plugins."""

__version__ = "0.1.0"
