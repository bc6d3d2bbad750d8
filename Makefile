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

demo: .venv/.lean  ## train Baseline, CL and DMT on embedded digits and scenes, print tables and explain them (3 to 5 minutes with set-up)
	@mkdir -p runs && echo "training on 40 labeled digits (images) and on 40 labeled scenes (pixels), side by side …"
	@OMP_NUM_THREADS=1 $(BIN)/dmt fit digits --compare baseline,cl,dmt --seeds 1-3 --set labels=40 --out runs/demo/digits \
	  > runs/demo-digits.log 2>&1 & digits=$$!; \
	OMP_NUM_THREADS=1 $(BIN)/dmt fit scenes --compare baseline,dmt --set fractions=0.3,0.6,1 --out runs/demo/scenes > runs/demo-scenes.log && \
	wait $$digits || { kill $$digits 2> /dev/null; cat runs/demo-digits.log; exit 1; }
	$(BIN)/dmt report runs/demo/digits runs/demo/scenes
	$(BIN)/dmt report runs/demo/digits runs/demo/scenes --out runs/demo/report.html
	@printf '%s\n' "" \
	  "What the numbers mean" \
	  "  Baseline was trained on the labels alone. CL and DMT also used the unlabeled images, after pseudo-labeling them." \
	  "  'final' is the score of the final model on held-out test images: accuracy for digits, mean IoU for scenes." \
	  "  'gain' is the difference from the Baseline with the same labels: what the unlabeled images added. ± is the standard" \
	  "  deviation over seeds; for a single seed, the range is a 90 % bootstrap interval over the test images. A gain whose" \
	  "  interval contains zero is called indistinguishable from chance." \
	  "  On digits, CL, which weights all pseudo labels equally, is as good as DMT or better. What DMT adds is in the last two columns:" \
	  "  wrong pseudo labels get a far lower weight than right ones." \
	  "  Charts: open runs/demo/report.html. Your own images: .venv/bin/dmt check FOLDER"

test: .venv/.full  ## run the checks and the whole suite
	@$(MAKE) --no-print-directory lint
	$(BIN)/pytest $(PARALLEL)

torture: .venv/.full  ## kill, damage, fill up and confuse runs, and write the record of it (5 to 15 minutes on two free cores)
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
