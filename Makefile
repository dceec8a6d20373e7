# make demo    measure a real training run on this machine and choose a machine for it
# make test    lint, types, layers and the whole test suite
# make fast    the tests that take no training run, no server and no installation
# make skypilot  the tests of the runner skypilot with SkyPilot itself, in an environment of its own
# make bench   the figures that the project is measured by

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
SKY    := .venv-sky
DEMO   := demo
JOBS   ?= 2
ARGS   ?=
# The Python that trains: the user's own where it has PyTorch, else the one set up here.
TRAINER = $(shell $(PYTHON) -c "import torch" 2>/dev/null && echo $(PYTHON) || echo $(BIN)/python)

.PHONY: demo test fast lint skypilot bench snapshot clean

demo: $(VENV)/.base
	@$(TRAINER) -c "import torch" 2>/dev/null || { \
	  echo "Installing PyTorch, once. To use your own: make demo PYTHON=/path/to/python"; \
	  $(BIN)/pip install --quiet --constraint constraints.txt torch; }
	@mkdir -p $(DEMO)
	$(BIN)/underdog measure --for 60s -- $(TRAINER) examples/train_gpt.py
	$(BIN)/underdog choose
	@$(BIN)/underdog choose --json --output $(DEMO)/decision.json
	@echo "The decision, as data: $(DEMO)/decision.json"
	@$(BIN)/underdog report --output $(DEMO)/report.html
	@echo "The same to look at, in a browser: $(DEMO)/report.html"

test: lint
	$(BIN)/pytest -n $(JOBS) --dist loadgroup

fast: $(VENV)/.dev
	$(BIN)/pytest -n $(JOBS) --dist loadgroup -m "not slow"

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

skypilot: $(SKY)/.done
	PATH="$(CURDIR)/$(SKY)/bin:$$PATH" $(SKY)/bin/pytest \
	  tests/runners/skypilot/test_planning.py tests/runners/skypilot/test_skypilot_slurm.py $(ARGS)

bench: $(VENV)/.dev
	for script in benchmarks/*.py; do echo "== $$script"; $(BIN)/python $$script || exit 1; done

snapshot: $(VENV)/.dev
	$(BIN)/python tools/build_snapshot.py

clean:
	rm -rf $(VENV) $(SKY) $(DEMO)

$(VENV)/.base: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "underdog needs Python 3.11 or newer: make PYTHON=python3.11 …")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --editable ".[report]"
	touch $@

$(VENV)/.dev: $(VENV)/.base constraints.txt
	$(BIN)/pip install --quiet --constraint constraints.txt --editable ".[dev,postgresql]"
	$(BIN)/pip install --quiet --constraint constraints.txt --requirement tests/requirements.txt
	touch $@

# SkyPilot's hundred packages stay apart from ours; uv, which its nodes need too, is the quicker
$(SKY)/.done: pyproject.toml constraints.txt
	test -x $(SKY)/bin/python || $(PYTHON) -m venv $(SKY)
	$(SKY)/bin/pip install --quiet uv
	$(SKY)/bin/uv pip install --quiet --python $(SKY)/bin/python --constraint constraints.txt \
	  --editable ".[skypilot]" hypothesis pytest pytest-timeout
	touch $@
