# `make demo` shows the product, `make test` runs the tests, `make check` is the gate.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := PIP_CONSTRAINT=$(CURDIR)/constraints.txt PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/pip
PLUGINS := plugins/sglang plugins/sglang_pd plugins/tokenspeed plugins/vllm

.PHONY: demo test test-core controlplane check lint types contracts generated format crds pods bench clean

demo: $(VENV)/.core
	@$(BIN)/python tools/demo.py

# The quick tests first, then those that need a control plane.
test: $(VENV)/.dev
	@$(BIN)/pytest
	@$(MAKE) --no-print-directory controlplane
	@$(BIN)/pytest tests/integration --cov --cov-config=tests/integration/coverage.ini --cov-fail-under=84

# A real control plane for tests, built once: tools/controlplane/README.md.
controlplane: $(VENV)/.dev
	@PYTHONPATH=tools $(BIN)/python -m controlplane build

# The core alone: no engine plugin is installed there, and its tests pass.
test-core: .venv-core/.done
	@.venv-core/bin/pytest tests --ignore=tests/integration

.venv-core/.done: pyproject.toml constraints.txt
	@echo "Installing OME without engine plugins into .venv-core …"
	@$(PYTHON) -m venv .venv-core
	@PIP_CONSTRAINT=$(CURDIR)/constraints.txt .venv-core/bin/pip install --quiet --editable '.[dev]'
	@touch $@

check: lint types contracts generated $(VENV)/.dev
	@$(BIN)/pytest --cov --cov-report=term --cov-fail-under=98

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/.dev
	$(BIN)/mypy

contracts: $(VENV)/.dev
	$(BIN)/lint-imports

generated: $(VENV)/.dev
	$(BIN)/python tools/generate.py --check

format: $(VENV)/.dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

crds: $(VENV)/.dev
	$(BIN)/python tools/generate.py

pods: $(VENV)/.dev
	$(BIN)/python tools/podtemplates.py

bench: $(VENV)/.dev
	$(BIN)/python bench/render.py
	$(BIN)/python bench/selection.py
	$(BIN)/python bench/blast.py
	$(BIN)/python bench/hooks.py
	$(BIN)/python bench/reconcile.py

$(BIN)/python:
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.core: $(BIN)/python pyproject.toml constraints.txt $(PLUGINS:%=%/pyproject.toml)
	@echo "Installing OME and its engine plugins into $(VENV) …"
	@$(PIP) install --quiet --editable . $(PLUGINS:%=--editable %)
	@touch $@

$(VENV)/.dev: $(VENV)/.core
	@echo "Installing the test tools into $(VENV) …"
	@$(PIP) install --quiet --editable '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache .mypy_cache .hypothesis .coverage
