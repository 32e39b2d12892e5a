# Every target sets itself up: a fresh machine needs Python (>= 3.11), make and a C compiler.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo quick test check slow install-test docs gpu format goldens mutants clean

setup: .venv/.done

.venv/.done: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Holdfast needs Python 3.11 or newer; give one with: make PYTHON=/path/to/python3.11" >&2; exit 2; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: setup
	$(BIN)/holdfast run climb --algorithm seqft,er,ewc,adapters --order "snli-ve>vqav2" --seeds 5 --jobs 2 \
	  --set benchmark.train=2000 --set benchmark.scored=500 --set train.epochs=4 --out demo
	$(BIN)/holdfast figures demo --out demo/figures
	$(BIN)/holdfast report demo --out demo/report

# Four tiers, which docs/design.md explains: quick (a minute), check (ten; what CI runs), slow, gpu.
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadfile

# Compiled once, not in each of the hundreds of processes that the tests start.
quick test check slow: export PYTHONDONTWRITEBYTECODE =

quick: setup
	$(PYTEST) --quick tests

test: setup
	$(PYTEST)

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(PYTEST)

slow: setup
	$(PYTEST) -m slow --timeout 1800

# Part of `make slow`: the wheel, in a fresh environment with the core only, runs every benchmark.
install-test: setup
	$(BIN)/python -m pytest -n 0 -m slow -s --timeout 1800 tests/test_install.py

# The website, in build/site: open build/site/index.html. A broken link is an error.
docs: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m website build/site

# Each piece takes less than ten minutes, and may be run alone: make gpu-viscoll.
GPU_BENCHMARKS := overhead fewshot viscoll epoch models algorithms
GPU := gpu-tests $(GPU_BENCHMARKS:%=gpu-%)
.PHONY: gpu-is-here $(GPU)

gpu:
	@for piece in $(GPU); do $(MAKE) --no-print-directory $$piece || exit 1; done

gpu-is-here: setup
	@$(BIN)/python -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' || \
	  { echo "make gpu needs a GPU, and torch finds none on this machine: nothing was tested" >&2; exit 2; }

gpu-tests: gpu-is-here
	timeout 600 $(BIN)/python -m pytest -n 0 -m slow tests/engine/test_cuda.py

$(GPU_BENCHMARKS:%=gpu-%): gpu-%: gpu-is-here
	timeout 600 $(BIN)/holdfast bench $* --device cuda

# Changes constants and operators of algorithms and memories, one at a time, and lists what no test notices.
mutants: setup
	$(BIN)/python tests/mutants.py

format: setup
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Record what was made by a part whose version was raised.
goldens: setup
	PYTHONPATH=tests $(BIN)/python tests/golden/cached.py
	PYTHONPATH=tests $(BIN)/python tests/golden/goldens.py

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache
