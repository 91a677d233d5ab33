"""Merging: layers of settings into one, and OME's own values on top."""
