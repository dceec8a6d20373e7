# make demo    measure a real training run on this machine and choose a machine for it
# make test    lint, types, layers and the whole test suite
# make fast    the tests that take no training run, no server and no installation
# make bench   the figures that the project is measured by

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
DEMO   := demo
JOBS   ?= 2
# The Python that trains: the user's own where it has PyTorch, else the one set up here.
TRAINER = $(shell $(PYTHON) -c "import torch" 2>/dev/null && echo $(PYTHON) || echo $(BIN)/python)

.PHONY: demo test fast lint bench snapshot clean

demo: $(VENV)/.base
	@$(TRAINER) -c "import torch" 2>/dev/null || { \
	  echo "Installing PyTorch, once. To use your own: make demo PYTHON=/path/to/python"; \
	  $(BIN)/pip install --quiet --constraint constraints.txt torch; }
	@mkdir -p $(DEMO)
	$(BIN)/underdog measure --for 60s -- $(TRAINER) examples/train_gpt.py
	$(BIN)/underdog choose
	@$(BIN)/underdog choose --json --output $(DEMO)/decision.json
	@echo "The decision, as data: $(DEMO)/decision.json"

test: lint
	$(BIN)/pytest -n $(JOBS) --dist loadgroup

fast: $(VENV)/.dev
	$(BIN)/pytest -n $(JOBS) --dist loadgroup -m "not slow"

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

bench: $(VENV)/.dev
	for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

snapshot: $(VENV)/.dev
	$(BIN)/python tools/build_snapshot.py

clean:
	rm -rf $(VENV) $(DEMO)

$(VENV)/.base: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "underdog needs Python 3.11 or newer: make PYTHON=python3.11 …")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --editable .
	touch $@

$(VENV)/.dev: $(VENV)/.base constraints.txt
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[dev,postgresql]"
	$(BIN)/pip install --quiet --constraint constraints.txt --requirement tests/requirements.txt
	touch $@
