# Everything runs from a clean checkout: `make demo` and `make test` install what they need.
SHELL := /bin/bash
.DEFAULT_GOAL := help
VENV := .venv
PYTHON := $(VENV)/bin/python
PIP := PYTHONWARNINGS=ignore $(PYTHON) -m pip --quiet --disable-pip-version-check
.PHONY: help notice deps prerequisites demo test lint types docs docs-check up down bench images lock clean
VERSION := $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' controller/__init__.py)

help:
	@echo "make demo                    show the promise on real parts"
	@echo "make test                    every test, all real parts included"
	@echo "make up, make down           a cluster to try things in, and its end"
	@echo "make bench                   measure speed against floors in the same run"
	@echo "make images [BASE=IMAGE]     build the images of inspector and sessions on docker's engine"
	@echo "make lint types docs-check   the other checks of CI"
	@echo "make docs                    write the generated pages of the reference"
	@echo "make lock                    write the exact versions of the Python packages anew"
	@echo "make clean                   remove what was installed and written into this directory"

notice:
	@echo "Runs on Debian 12 (amd64): as root, or as a user of a Docker engine that is there."
	@echo "Installs, where missing: Debian packages to run (docker.io, docker-compose, kubernetes-client)"
	@echo "and to build with (golang-go, debootstrap and small ones), Python packages into $(VENV)."
	@echo "Builds once, and keeps in your cache directory: kube-apiserver from Debian's source (3 to 5"
	@echo "minutes; or set SESSIONKEEPER_TEST_APISERVER_IMAGE to an image of it that can be pulled), and"
	@echo "a base image from Debian packages (1 minute)."
	@echo "All in all 6 to 9 minutes the first time, and seconds after that, before the first step."

deps: $(VENV)/.installed

$(VENV)/.installed: requirements.lock pyproject.toml
	@python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "python3 is older than 3.11" >&2; exit 1; }
	@tests/cluster/prerequisites.sh run
	@echo "Installing Python packages into $(VENV) (about a minute)"
	@python3 -m venv $(VENV)
	@$(PIP) install --require-hashes -r requirements.lock
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

prerequisites: notice
	@tests/cluster/prerequisites.sh run
	@$(MAKE) --no-print-directory deps
	@$(PYTHON) -m tests.cluster prepare

demo: prerequisites
	$(PYTHON) -m tests.demo

up: prerequisites
	$(PYTHON) -m tests.cluster up

# Needs nothing installed, so that it works whatever became of the checkout.
down:
	python3 -m tests.cluster down

test: prerequisites
	$(PYTHON) -m pytest tests -n 3 --dist worksteal

bench: prerequisites
	$(PYTHON) -m tests.bench $(if $(KEEP),--keep)

# BASE is any image with Python 3.11 or later, git and tmux, or a Debian one that can install them.
images:
	docker build $(if $(BASE),--build-arg BASE=$(BASE)) --file manifests/images/inspector/Dockerfile \
	  --tag sessionkeeper/inspector:$(VERSION) .
	docker build $(if $(BASE),--build-arg BASE=$(BASE)) --file manifests/images/session/Dockerfile \
	  --tag sessionkeeper/session:$(VERSION) .

lint: deps
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/lint-imports

types: deps
	$(VENV)/bin/mypy

docs: deps
	$(PYTHON) -m controller.api.reference

docs-check: deps
	$(PYTHON) -m controller.api.reference --check

lock: deps
	$(VENV)/bin/pip-compile --quiet --strip-extras --extra dev --generate-hashes --no-emit-index-url \
	  --no-emit-find-links --allow-unsafe --output-file requirements.lock pyproject.toml

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis \
	  .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
