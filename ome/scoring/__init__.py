"""Which runtimes and entries fit a model, and how well."""
