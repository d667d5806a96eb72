# Everything runs inside .venv; a stamp file per extra keeps a second run from installing again.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
JOBS ?= 2
# The tests start some hundred processes: without files of bytecode each compiles all of accnp anew,
# 1.2 instead of 0.15 s.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-gpu chance sweep lint bench tiny clean
.DELETE_ON_ERROR:

demo: $(VENV)/.demo
	$(BIN)/python -m demos

test: lint
	$(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal

# On a machine with a GPU and CuPy, by its own Python: nothing is installed, and pytest needs none of
# its plugins (whose options are among the usual addopts). The simplest checks come
# first, alone; then each file is a process of its own, as a fault of a kernel ends all GPU work of
# its process. All run side by side (the longest file in ten parts), for GPU_LIMIT seconds at most:
# eight minutes with the checks.
GPU_LIMIT = 280
GPU_PARTS = 0 1 2 3 4 5 6 7 8 9
GPU_TESTS = programs glue memory tables products captures scatter blocks block_convolutions \
	user_kernels $(GPU_PARTS:%=op_table.%)
test-gpu:
	$(PYTHON) tests/cuda/smoke.py $(SMOKE); failed=$$?; logs=$$(mktemp -d); \
	for name in $(GPU_TESTS); do \
		(ACCNP_TEST_GPU=1 ACCNP_TEST_PART=$${name#*.} ACCNP_TEST_PARTS=$(words $(GPU_PARTS)) \
			timeout -s INT -k 9 $(GPU_LIMIT) \
			$(PYTHON) -m pytest -q -W default --tb=short -o addopts=--import-mode=importlib \
			tests/cuda/test_$${name%.*}.py \
			>$$logs/$$name 2>&1; \
		echo "$$name ended with $$?" >>$$logs/$$name) & \
	done; wait; \
	for name in $(GPU_TESTS); do \
		tail -n 60 $$logs/$$name; grep -q "ended with 0$$" $$logs/$$name || failed=1; \
	done; rm -r $$logs; exit $$failed

# Random programs with fresh seeds: make chance SECONDS=600.
SECONDS = 60
chance: $(VENV)/.test
	$(BIN)/python -m tests.chance $(SECONDS) --processes $(JOBS)

# Random calls of all public functions beside jax, with fresh seeds: make sweep SECONDS=3600.
sweep: $(VENV)/.test
	$(BIN)/python -m tests.sweep $(SECONDS)

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
