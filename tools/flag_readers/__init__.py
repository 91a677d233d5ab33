"""One reader of released command lines per engine."""
