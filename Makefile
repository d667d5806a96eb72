# Everything runs inside .venv. A stamp file for each extra prevents repeated installations.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
JOBS ?= 2
# The tests start some hundred processes. Without bytecode files, each of them would compile all of
# accnp, which takes 1.2 s instead of 0.15 s.
unexport PYTHONDONTWRITEBYTECODE

GPU_STEPS = gpu-bench gpu-checks gpu-tests gpu-floats gpu-chance
.PHONY: demo check check-tests test test-full test-fallback test-numba test-scipy test-asan test-gpu $(GPU_STEPS) gpu-wheels chance sweep lint lint-changed names bench tiny docs docs-without-notebooks linkcheck clean
.DELETE_ON_ERROR:

demo: $(VENV)/.demo
	$(BIN)/python -m demos

# Three tiers. Before each commit (under a minute): lint, the types of the changed files, layers, some
# programs from end to end, and every op once.
CHECK_TESTS = tests/test_layers.py tests/test_annotations.py tests/test_tiny.py tests/test_every_op.py
check:
	$(MAKE) --no-print-directory -j2 lint-changed check-tests

TYPED = accnp benchmarks demos pytest_accnp
lint-changed: $(VENV)/.test
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	files=$$({ git diff --name-only --diff-filter=d HEAD -- $(TYPED); \
		git ls-files --others --exclude-standard -- $(TYPED); } | grep "\.py$$"); \
	test -z "$$files" || $(BIN)/pyright --pythonpath $(BIN)/python $$files

check-tests: $(VENV)/.test
	$(BIN)/python -m pytest -q $(CHECK_TESTS)

# `make test` must pass, and CI runs it: all tests except those that are marked `full`. A test that
# takes ten minutes is assumed to hang. It fails with the stacks of all threads, and the other tests
# continue.
PYTEST = $(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal \
	-o faulthandler_timeout=600 -o faulthandler_exit_on_timeout=true
test: lint
	$(PYTEST) -m "not full"

# All tests with both back ends, random programs, and random calls that are compared with JAX. It is
# for changes of the compiler and takes hours.
test-full: lint
	ACCNP_FUZZ_SECONDS=15 $(PYTEST)
	$(MAKE) --no-print-directory test-numba PART=0/1 CASE=
	$(MAKE) --no-print-directory chance sweep SECONDS=600

# These targets are for a machine with a GPU and CuPy. They use its own Python, install nothing, and
# need no pytest plugins (the usual addopts contain options of plugins). Each of the five steps
# takes at most STEP seconds; the most important steps come first. Their output is also written to
# files in OUT.
STEP = 95
OUT ?= gpu-out
$(GPU_STEPS): SHELL := bash
GPU_RUN = set -o pipefail; mkdir -p $(OUT); \
	PYTHONPATH=.:$$PYTHONPATH PYTHONUNBUFFERED=1 timeout -s INT -k 5 $(STEP) $(PYTHON)
gpu-bench:
	$(GPU_RUN) -m accnp bench --device gpu --within $$(($(STEP) - 5)) --json $(OUT)/bench.json \
		2>&1 | tee $(OUT)/bench.txt
gpu-checks:
	$(GPU_RUN) tests/cuda/smoke.py $(OUT)/checks.json $$(($(STEP) - 5)) 2>&1 | tee $(OUT)/checks.txt
gpu-tests:
	mkdir -p $(OUT); $(MAKE) test-gpu CHECKS=true GPU_LIMIT=$$(($(STEP) - 10)) \
		>$(OUT)/tests.txt 2>&1; failed=$$?; \
		grep -aE "ended with|passed|failed|^FAILED" $(OUT)/tests.txt; exit $$failed
gpu-floats:
	$(GPU_RUN) tests/cuda/float32_errors.py 2>&1 | tee $(OUT)/floats.txt
gpu-chance:
	$(GPU_RUN) -m tests.chance $$(($(STEP) - 20)) --processes 12 \
		--against gpu,gpu-guards,gpu-lifetimes,gpu 2>&1 | tee $(OUT)/chance.txt

# Download numba and llvmlite to WHEELS for such a machine (Python 3.12 on x86-64, no network). Copy
# the folder there, and put the packages before those of the machine:
#   python3 -m pip install --no-index --no-deps --target /tmp/site gpu-wheels/*.whl
#   export PYTHONPATH=/tmp/site
WHEELS = gpu-wheels
gpu-wheels: | $(VENV)/bin/python
	$(BIN)/python -m pip download --no-deps --only-binary=:all: --implementation cp \
		--python-version 3.12 --platform manylinux_2_28_x86_64 --platform manylinux_2_27_x86_64 \
		--platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 -d $(WHEELS) \
		$$($(BIN)/python -m pip list --format freeze | grep -E "^(numba|llvmlite)==")

# The simplest checks run first. Then each test file runs in its own process, because a fault in a
# kernel ends all GPU work of its process. All files run concurrently (the longest one in ten
# parts), for at most GPU_LIMIT seconds. Together with the checks, this takes at most eight minutes.
CHECKS = $(PYTHON) tests/cuda/smoke.py $(SMOKE)
GPU_LIMIT = 280
GPU_PARTS = 0 1 2 3 4 5 6 7 8 9
# The newest tests, which have not run on hardware, come first.
GPU_TESTS = cusolver_factorizations products_of_rows convolution_products user_device kernels_page \
	programs gpu_arrays memory machine_code_loops products graph_capture scatter \
	block_factorizations block_convolutions user_kernels float32_errors \
	$(GPU_PARTS:%=op_table.%)
test-gpu:
	$(CHECKS); failed=$$?; logs=$$(mktemp -d); \
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

# Random calls of all public functions, compared with JAX, with fresh seeds: make sweep
# SECONDS=3600.
sweep: $(VENV)/.test
	$(BIN)/python -m tests.sweep $(SECONDS)

lint: $(VENV)/.test
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright --pythonpath $(BIN)/python

# The tests of the hot path without the extension, and with one that checks its memory.
NATIVE_TESTS = tests/_native tests/runtime tests/engine tests/test_counts.py tests/pytree/test_pytree.py $(wildcard tests/api/jit/test_short_call*.py)
test-fallback: $(VENV)/.test
	ACCNP_NATIVE=0 $(PYTEST) -m "not full" $(NATIVE_TESTS)

# The tests with all kernels compiled through Numba's public API, which takes several times as long.
# CI runs an eighth of the test functions, with one in 32 of their cases, but at least one. The next
# commit runs the next eighth, and after eight commits the cases change. `make test-numba PART=3/8
# CASE=` runs all cases of the fourth eighth.
NUMBA_TESTS = $(addprefix tests/,api compiler devtools engine experimental ir jax_compat lax nn numpy primitives \
	random runtime scipy sharding transforms)
PARTS = 8
COMMITS := $(shell git rev-list --count HEAD 2>/dev/null || date +%-j)
PART = $(shell expr $(COMMITS) % $(PARTS))/$(PARTS)
CASE = $(shell expr $(COMMITS) / $(PARTS))/32
test-numba: $(VENV)/.test
	ACCNP_COMPILER=numba ACCNP_TEST_SHARE=$(PART) ACCNP_TEST_CASE=$(CASE) $(PYTEST) -m "not full" \
		$(NUMBA_TESTS)

# SciPy's own tests of its array API support, with accnp as the library. They take more than an
# hour. The results per file are written to docs/libraries.md.
test-scipy: $(VENV)/.test
	$(BIN)/python tests/libraries/scipy_tests.py --jobs $(JOBS)
	$(BIN)/python tests/libraries/scipy_tests.py --table

# Built apart with gcc's AddressSanitizer. Memory that the interpreter itself never frees is not reported.
ASAN = build/asan
test-asan: $(VENV)/.test
	CFLAGS="-O1 -g -fsanitize=address -fno-omit-frame-pointer" \
		$(BIN)/python setup.py -q build_ext --build-lib $(ASAN) --build-temp $(ASAN)/objects
	LD_PRELOAD=$$($(CC) -print-file-name=libasan.so) ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc \
		ACCNP_NATIVE=$$(ls $(ASAN)/accnp/_native/_core*) $(BIN)/python -m pytest -q \
		tests/_native/test_native.py tests/runtime/test_buffer.py tests/runtime/test_thread_pool.py \
		tests/engine/test_pending_dispatch.py $(wildcard tests/api/jit/test_short_call*.py)

# The table of public names and ops that are loaded on first use (accnp/public_names.py).
names: $(VENV)/.test
	$(BIN)/python -m tests.public_names

tiny: $(VENV)/.test
	$(BIN)/python -m pytest -q tests/test_tiny.py

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks.compare --json benchmarks/out/compare.json

# The documentation site, in docs/_build/html. Warnings are errors, also those about links within
# the site. Nothing is downloaded. CI builds the site without running the notebooks, because the
# tests run them.
SPHINX = $(BIN)/python -m sphinx --keep-going -q
NO_NOTEBOOKS = -D nb_execution_mode=off
# Pages are read one after the other, because notebooks that run concurrently disturb their timings.
DOCS =
docs: $(VENV)/.docs
	$(SPHINX) -W -b html $(DOCS) docs docs/_build/html

# Check all external links. This needs a network and takes minutes.
linkcheck: $(VENV)/.docs
	$(SPHINX) -b linkcheck $(NO_NOTEBOOKS) docs docs/_build/linkcheck

docs-without-notebooks: DOCS = $(NO_NOTEBOOKS)
docs-without-notebooks: docs

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "accnp needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

# This pattern is for .demo, .test, .bench and .docs: each stamp has the name of its extra.
$(VENV)/.%: pyproject.toml setup.py $(wildcard accnp/_native/*.[ch]) | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[$*]'
	touch $@

clean:
	rm -rf $(VENV) build dist demos/out benchmarks/out docs/_build docs/api docs/errors .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
