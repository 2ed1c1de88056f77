# The main targets are `make up` and `make test`. Both work on a fresh Debian machine.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
VENV := .venv
READY := $(VENV)/.ready
BIN := $(VENV)/bin

.PHONY: help
help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' $(MAKEFILE_LIST) | expand -t 18

.PHONY: up down
up: $(READY) ## start a Slurm cluster on this machine and run a first job
	@$(BIN)/kubeslurm up

down: $(READY) ## stop it; volumes are kept
	@$(BIN)/kubeslurm down

.PHONY: test test-fast test-cluster lint types layers format
test: lint types layers ## run all tests but the long chaos tests and benchmarks
	$(BIN)/pytest -n auto tests/unit tests/property
	$(MAKE) test-cluster

test-fast: lint types layers ## run the tests that need no cluster, in less than a minute
	$(BIN)/pytest -n auto tests/unit tests/property

# tests/local runs alone: with its clusters, a user's inotify instances would not do for the others. The rest runs side
# by side, because it waits more than it works; the shorter half is shown when the longer one is over.
test-cluster: $(READY) test-tools
	$(BIN)/pytest tests/local
	@rm -rf .requests
	@echo "tests/integration, tests/slurm and tests/up run beside tests/e2e: see .test-parts.log"
	@$(MAKE) test-parts > .test-parts.log 2>&1 & parts=$$!; \
	  $(MAKE) test-e2e && e2e=passed || e2e=failed; \
	  wait $$parts && parts=passed || parts=failed; \
	  cat .test-parts.log; [ "$$parts $$e2e" = "passed passed" ]
	$(BIN)/pytest tests/rights

.PHONY: test-parts test-e2e
# One run each, so that the control plane of the first is gone before the second starts its cluster.
test-parts: $(READY)
	$(BIN)/pytest tests/integration tests/slurm
	$(BIN)/pytest tests/up

# A process that dies is not replaced: its cluster would be left behind, and the run might never end.
test-e2e: $(READY)
	$(BIN)/pytest -n 2 --max-worker-restart=0 tests/e2e

lint: $(READY) ## check the style
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(READY)
	$(BIN)/mypy

layers: $(READY)
	$(BIN)/lint-imports

format: $(READY) ## format the code
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

.PHONY: generate
generate: $(READY) ## update what is generated into the charts: CRDs and roles
	$(BIN)/kubeslurm crds --output charts/slurm-operator-crds/templates
	$(BIN)/kubeslurm rbac --output charts/slurm-operator/templates/_rules.tpl

.PHONY: chaos bench lock clean
chaos: $(READY) ## run the long tests under faults
	$(BIN)/pytest tests/chaos

bench: $(READY) ## run the benchmarks
	@for benchmark in benchmarks/*.py; do echo "== $$benchmark"; $(BIN)/python "$$benchmark"; done

UV := $(VENV)/tools/bin/uv
COMPILE = $(UV) pip compile --quiet --universal --generate-hashes --no-header --no-emit-index-url --python-version 3.11

lock: $(READY) ## update the lock files from pyproject.toml
	@[ -x $(UV) ] || { $(PYTHON) -m venv $(VENV)/tools && $(VENV)/tools/bin/pip install --quiet uv; }
	$(COMPILE) --upgrade --extra dev --output-file requirements-dev.lock pyproject.toml
	$(COMPILE) --upgrade --constraint requirements-dev.lock --output-file requirements.lock pyproject.toml

clean: ## remove the virtual environment and tool caches
	rm -rf $(VENV) .requests .test-parts.log .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

# The virtual environment; it is updated when the lock file or the project file changes.
$(READY): requirements-dev.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "kubeslurm needs Python 3.11 or newer; $(PYTHON) is older or missing. Set PYTHON=/path/to/python3." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2> /dev/null || $(MAKE) --silent venv-package
	@echo "create the virtual environment ..."
	@[ -x $(BIN)/python ] && $(BIN)/python -c 'import pip' 2> /dev/null || $(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements-dev.lock
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

.PHONY: venv-package test-tools
venv-package:
	@$(call INSTALL,python3-venv)

# Tools and builds that the tests need. Made before pytest runs, because pytest hides the progress.
test-tools: $(READY)
	@command -v shellcheck > /dev/null || { $(call INSTALL,shellcheck); }
	@$(BIN)/python -m tests.support.machine

INSTALL = if [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
	  echo "install $(1) ..."; \
	  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $(1) > /dev/null; \
	else \
	  echo "$(1) is not installed. Install it (Debian: apt-get install $(1)) and try again." >&2; exit 1; \
	fi
