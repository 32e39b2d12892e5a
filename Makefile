# Every target sets itself up: a fresh machine needs Python (>= 3.11), make and a C compiler.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: setup demo test check format goldens mutants clean

setup: .venv/.done

.venv/.done: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "Holdfast needs Python 3.11 or newer; give one with: make PYTHON=/path/to/python3.11" >&2; exit 2; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: setup
	$(BIN)/holdfast run climb --algorithm seqft,er,ewc,adapters --set benchmark.train=400 --out demo
	$(BIN)/holdfast climb tables demo --table 3
	$(BIN)/holdfast report demo --out demo/report

# Compiled once, not in each of the hundreds of processes that the tests start.
test check: export PYTHONDONTWRITEBYTECODE =

test: setup
	$(BIN)/python -m pytest -n 2 --dist loadfile

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n 2 --dist loadfile

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
