# Everything a fresh machine needs is python3 and make.
PYTHON ?= python3
BIN := .venv/bin
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
export OMP_WAIT_POLICY := passive
# one more than there are cores: tests that start processes wait for them
PARALLEL ?= -n $(shell $(PYTHON) -c 'import os; print(min(4, os.cpu_count()) + 1)') --dist worksteal

.DEFAULT_GOAL := help
.PHONY: help demo test torture check format clean

help:  ## show this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

demo: .venv/.lean  ## train Baseline, CL and DMT on embedded digits and scenes, print tables and say what they mean (about 5 minutes with set-up)
	@mkdir -p runs && echo "training on 40 labeled digits (images) and on 40 labeled scenes (pixels), side by side …"
	@OMP_NUM_THREADS=1 $(BIN)/dmt fit digits --compare baseline,cl,dmt --seeds 1-3 --set labels=40 --out runs/demo/digits \
	  > runs/demo-digits.log 2>&1 & digits=$$!; \
	OMP_NUM_THREADS=1 $(BIN)/dmt fit scenes --compare baseline,dmt --set fractions=0.3,0.6,1 --out runs/demo/scenes > runs/demo-scenes.log && \
	wait $$digits || { kill $$digits 2> /dev/null; cat runs/demo-digits.log; exit 1; }
	$(BIN)/dmt report runs/demo/digits runs/demo/scenes
	$(BIN)/dmt report runs/demo/digits runs/demo/scenes --out runs/demo/report.html
	@printf '%s\n' "" \
	  "What the numbers mean" \
	  "  Baseline learned from the labels alone. CL and DMT learned from the unlabeled images, too, after labeling them themselves." \
	  "  'shipped' is the score on test images that no net has seen: percent of digits named right, mean IoU of scenes." \
	  "  'gain' is what the unlabeled images brought: points above the Baseline that had the same labels. After ± stands how much it" \
	  "  varies from seed to seed; a single seed has the range of nine in ten draws of the test images instead." \
	  "  A gain whose 90 % interval holds zero is followed by 'cannot be told from chance'. CL, which counts all labels alike, is" \
	  "  as good as DMT on digits; what DMT adds is seen in the last two columns: its wrong labels weigh far less than its right ones." \
	  "  To look at it, open runs/demo/report.html. To use it on your images: .venv/bin/dmt check FOLDER"

test: .venv/.full  ## run the checks and the whole suite
	@$(MAKE) --no-print-directory lint
	$(BIN)/pytest $(PARALLEL)

torture: .venv/.full  ## kill, damage, fill up and confuse runs, and write the record of it (about 15 minutes on two free cores)
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.torture --out benchmarks/results/torture.json

check: .venv/.full  ## format, lint, types and the fast tests: before every commit
	@$(MAKE) --no-print-directory lint
	$(BIN)/pytest $(PARALLEL) -m "not slow"

.PHONY: lint
lint:
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy

format: .venv/.full  ## format the code and mend what ruff can mend
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

clean:  ## remove the environment and the demo's run
	rm -rf .venv runs/demo runs/demo-*.log

.venv/bin/python:
	$(PYTHON) -m venv .venv

# The stamps say what is installed; they age only when the requirements change.
.venv/.lean: pyproject.toml constraints.txt | .venv/bin/python
	@echo "setting up .venv (a minute or two)"
	$(INSTALL) -e .
	@touch $@

.venv/.full: pyproject.toml constraints.txt | .venv/bin/python
	@echo "setting up .venv with what the tests need (a few minutes)"
	$(INSTALL) -e ".[dev]"
	@touch $@ .venv/.lean
