# Every target works in a fresh clone: the first run makes .venv, later ones reuse it.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
ARGS ?=
# Tests start thousands of processes, each of which would compile our modules anew without bytecode.
# Many tests wait for processes, so two cores carry four files at once (tests/conftest.py mixes them).
TESTS_AT_ONCE ?= 4

.DEFAULT_GOAL := help
QUICK := tests/architecture tests/unit/bot tests/unit/runners/contract tests/unit/runners/languages

.PHONY: help demo up test test-quick lint format bench clean

help: ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 18

demo: $(VENV)/.installed-local ## Publish a few tasks, judge a dozen kernels, print the standings (ARGS=--all for all)
	@$(BIN)/podium demo $(ARGS)

up: $(VENV)/.installed-local ## Run Podium here until Ctrl-C, with its pages at port 8000
	@PODIUM_HTTP_PORT=$${PODIUM_HTTP_PORT-8000} $(BIN)/podium up $(ARGS)

test: $(VENV)/.installed-dev ## Run every test (ARGS="tests/unit -k rank" for some)
	@$(BIN)/python -m compileall -q bot runners tests
	@env -u PYTHONDONTWRITEBYTECODE \
		$(BIN)/python -m pytest -n $(TESTS_AT_ONCE) --dist loadfile --no-loadscope-reorder $(ARGS)

test-quick: $(VENV)/.installed-dev ## Run the tests that start no process of their own
	@$(MAKE) --no-print-directory test ARGS='$(QUICK) -m "not postgres and not slow"'

lint: $(VENV)/.installed-dev ## Run ruff, the import contracts, mypy, the audits of workflows and images
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(BIN)/zizmor --offline --quiet .github/workflows
	$(BIN)/hadolint --config docker/hadolint.yaml docker/*.Dockerfile
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.compose-spec docker/compose.yaml

format: $(VENV)/.installed-dev ## Let ruff mend what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.installed-dev ## Print the benchmarks (ARGS=queue for one of them)
	@set -e; for script in $(if $(ARGS),$(ARGS:%=tests/benchmarks/%.py),tests/benchmarks/[a-z]*.py); do \
		printf '\n== %s\n' "$$script"; $(BIN)/python -m "tests.benchmarks.$$(basename "$$script" .py)"; done

clean: ## Remove the environment and the caches, never data
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Podium needs Python 3.11 or newer; name one: make PYTHON=python3.12 ...")'
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "no venv module here; on Debian: apt install python3-venv" >&2; exit 3; }

$(VENV)/.installed-local: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[local]'
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[local,dev]'
	@touch $@ $(VENV)/.installed-local
