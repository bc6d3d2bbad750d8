# Everything a fresh machine needs is python3 and make.
PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
export OMP_WAIT_POLICY := passive

.DEFAULT_GOAL := help
.PHONY: help demo test check format clean

help:  ## show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: .venv/.lean  ## train Baseline, CL and DMT on embedded digits and print a table (2 minutes)
	$(BIN)/dmt fit digits --compare baseline,cl,dmt --seeds 1-3 --out runs/demo

test: .venv/.full  ## run the checks and the whole suite
	@$(MAKE) --no-print-directory lint
	$(BIN)/pytest

check: .venv/.full  ## format, lint, types and the fast tests: before every commit
	@$(MAKE) --no-print-directory lint
	$(BIN)/pytest -m "not slow"

.PHONY: lint
lint:
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy

format: .venv/.full  ## format the code and mend what ruff can mend
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

clean:  ## remove the environment and the demo's run
	rm -rf .venv runs/demo

.venv/bin/python:
	$(PYTHON) -m venv .venv

# The stamps say what is installed; they age only when the requirements change.
.venv/.lean: pyproject.toml constraints.txt | .venv/bin/python
	@echo "setting up .venv (about a minute)"
	$(INSTALL) -e .
	@touch $@

.venv/.full: pyproject.toml constraints.txt | .venv/bin/python
	@echo "setting up .venv with what the tests need (a few minutes)"
	$(INSTALL) -e ".[dev]"
	@touch $@ .venv/.lean
