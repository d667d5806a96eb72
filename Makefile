# Everything runs inside .venv; a stamp file per extra keeps a second run from installing again.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
JOBS ?= 2

.PHONY: demo test test-gpu lint bench tiny clean
.DELETE_ON_ERROR:

demo: $(VENV)/.demo
	$(BIN)/python -m demos

test: lint
	$(BIN)/python -m pytest -q -n $(JOBS)

# On a machine with a GPU and CuPy, by its own Python: nothing is installed.
test-gpu:
	ACCNP_TEST_GPU=1 $(PYTHON) -m pytest -q \
		tests/cuda/test_programs.py tests/cuda/test_op_table.py tests/cuda/test_glue.py \
		tests/cuda/test_tables.py tests/cuda/test_products.py tests/cuda/test_scatter.py \
		tests/cuda/test_captures.py

lint: $(VENV)/.test
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright --pythonpath $(BIN)/python

tiny: $(VENV)/.test
	$(BIN)/python -m pytest -q tests/test_tiny.py

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks.compare --json benchmarks/out/compare.json

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "accnp needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

# One pattern for .demo, .test and .bench: the extra has the stamp's name.
$(VENV)/.%: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[$*]'
	touch $@

clean:
	rm -rf $(VENV) build dist demos/out benchmarks/out .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
