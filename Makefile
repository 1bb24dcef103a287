# Everything a developer runs. `make demo` and `make test` need only python3 (3.11 or newer) and a network or a package cache.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
TORCH_VERSION := 2.13.0
SEEDS ?= 5000
TEST := $(BIN)/python -m pytest -n auto --dist worksteal

# Pyright's launcher looks for a newer release of itself on every run unless it is told not to.
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1

.PHONY: help setup setup-torch setup-xe demo test test-all test-gpu test-arm64 test-libraries test-operations test-models test-mutations lint format bench bench-gpu clean
.DEFAULT_GOAL := help

help: ## say what there is
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 22

setup: $(VENV)/.installed $(if $(TORCH),setup-torch) ## make .venv with the project (editable) and the test extra; TORCH=1 adds torch

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "mltriton needs Python 3.11 or newer: make setup PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	@touch $@

setup-torch: $(VENV)/.torch ## add torch, which the tests and benchmarks compare against

$(VENV)/.torch: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet 'torch==$(TORCH_VERSION)'
	@touch $@

setup-xe: $(VENV)/.xe ## add what runs kernels for Intel GPUs (1.7 GB) and, on Debian, Intel's offline compiler

$(VENV)/.xe: $(VENV)/.installed scripts/install-ocloc.sh
	$(BIN)/python -m pip install --quiet --editable '.[xe]'
	scripts/install-ocloc.sh $(VENV)/xe
	@touch $@

demo: setup ## run the kernels through every level on this machine's CPU, checked and timed
	$(BIN)/mltriton demo

test: setup ## run the tests; FLAGS are given to pytest
	$(TEST) -q -rs $(FLAGS)

test-all: setup ## run the tests and the long fuzzing runs, property tests on new examples
	$(TEST) -q -m "slow or not slow" --hypothesis-profile=random

test-libraries: setup setup-torch ## fetch libraries written for Triton and compare their operations with plain torch: docs/libraries.md
	$(BIN)/python scripts/test_libraries.py --into $(VENV)/libraries --write docs/libraries.md

test-operations: setup setup-torch ## compare torch's own operations by torch.compile with Triton kernels with eager torch (hours): docs/torch-compile.md
	$(BIN)/python -W ignore tests/as_triton/operations.py

test-models: setup setup-torch ## fetch transformers and Helion, and compare small models and kernels in the same way
	$(BIN)/python -m pip install --quiet transformers helion
	$(BIN)/python -W ignore tests/as_triton/helion_kernels.py
	$(BIN)/python -W ignore tests/as_triton/models.py

test-gpu: ## run the tests of the language, the library and random kernels on this machine's NVIDIA GPU; SEEDS=5000
	$(PYTHON) scripts/test_gpu.py --seeds $(SEEDS)

test-arm64: setup ## run the tests of the language, the library and the launcher for AArch64, on x86-64 Debian by emulation (an hour)
	PYTHON=$(BIN)/python scripts/install-arm64.sh $(VENV)/arm64
	PYTHONPATH=src $(VENV)/arm64/python -m pytest -n auto --dist worksteal -q -rs tests/runtime/test_objects.py tests/runtime/test_launcher.py tests/language tests/kernels

test-mutations: setup ## plant mistakes in copies of the compiler: the tests must notice 95 % of them
	PYTHONPATH=tests $(BIN)/python -m mutations.run

lint: setup ## check style, format and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python

format: setup ## apply the style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: setup ## compare with the best library, side by side in one run
	$(BIN)/mltriton bench

bench-gpu: ## the same on this machine's NVIDIA GPU, against torch and upstream's Triton where they are installed
	PYTHONPATH=src $(PYTHON) -m mltriton bench -t cuda

clean: ## remove what the targets above made
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .hypothesis
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
