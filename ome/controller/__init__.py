"""The controller: watches feed the core's snapshot, and its plans are carried out."""
