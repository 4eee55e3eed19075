# Everything runs from a clean checkout: `make demo` and `make test` install what they need.
SHELL := /bin/bash
.DEFAULT_GOAL := help
VENV := .venv
PYTHON := $(VENV)/bin/python
.PHONY: help deps notice demo test lint types docs-check up down bench clean lock generate

help:
	@echo "make demo        show the promise on real parts (about 5 minutes the first time, then 1)"
	@echo "make test        every test, all real parts included"
	@echo "make up / down   leave the demo's cluster running / stop it"
	@echo "make bench       measure speed against floors in the same run"
	@echo "make lint types docs-check   the other checks of CI"

notice:
	@echo "Runs on Debian 12 (amd64) as root, or as a user of a Docker engine with the packages there."
	@echo "The first run installs Debian packages (docker.io, docker-compose, debootstrap, golang-go"
	@echo "and a few small ones) and Python packages into $(VENV), builds kube-apiserver from Debian's"
	@echo "source (3 to 5 minutes) and a base image (1 minute), and keeps both in your cache directory."

deps: notice $(VENV)/.installed

$(VENV)/.installed: requirements.lock pyproject.toml
	@tests/cluster/prerequisites.sh
	python3 -m venv $(VENV)
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	PYTHONWARNINGS=ignore $(PYTHON) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

prerequisites: deps
	@tests/cluster/prerequisites.sh

demo: prerequisites
	$(PYTHON) -m tests.demo

up: prerequisites
	$(PYTHON) -m tests.cluster up

down:
	$(PYTHON) -m tests.cluster down

test: prerequisites
	$(PYTHON) -m pytest tests

bench: prerequisites
	$(PYTHON) -m tests.bench

lint: deps
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/lint-imports

types: deps
	$(VENV)/bin/mypy

docs-check: deps
	$(PYTHON) -m controller.api.reference --check

lock:
	$(VENV)/bin/pip-compile --quiet --strip-extras --extra dev --generate-hashes --no-emit-index-url \
	  --no-emit-find-links --allow-unsafe --output-file requirements.lock pyproject.toml

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
