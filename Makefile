# From a fresh clone with only Python 3.11 or newer: each command makes what it needs by itself.
#   make demo   make test   make pitfalls   make lint   make bench   make clean
# PYTHON=... names the interpreter, VENV=... the environment (default .venv),
# ARGS=... goes to pytest, the demo or the benchmarks; JOBS=... is how many processes run the tests
# (default one for each core; 0 for none beside pytest itself, as a debugger needs it).
VENV ?= .venv
export VENV
JOBS ?= auto
TORCH := 2.13.0
# A process of tests keeps to one thread of BLAS, since there is one process for each core.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1

.NOTPARALLEL:
.PHONY: help demo test pitfalls lint format bench peers clean

help:
	@sed -n '2,6s/^# *//p' Makefile

demo:
	@scripts/env examples
	@"$(VENV)/bin/python" examples/digits.py $(ARGS)

test:
	@scripts/env examples cli test
	@$(ONE_THREAD) "$(VENV)/bin/pytest" -n $(JOBS) --dist worksteal $(ARGS)

# A bad program and a good twin for each training pitfall; ends with the score and what is open.
pitfalls:
	@scripts/env examples cli test
	@"$(VENV)/bin/pytest" -q tests/pitfalls $(ARGS)

lint:
	@scripts/env dev
	@scripts/lint

format:
	@scripts/env dev
	@"$(VENV)/bin/python" -m ruff check --fix .
	@"$(VENV)/bin/python" -m ruff format .

bench:
	@scripts/env examples
	@"$(VENV)/bin/python" benchmarks/run.py $(ARGS)

# The peers that we measure against are large and never a dependency: an environment of their own.
peers:
	@VENV=.venv-peers scripts/env
	@.venv-peers/bin/python -m pip install --quiet torch==$(TORCH) numpy
	@.venv-peers/bin/python -m pip install --quiet pytorch-lightning==2.6.6

clean:
	rm -rf .venv .venv-peers build *.egg-info .pytest_cache .hypothesis .ruff_cache .mypy_cache
	rm -rf runs loss.png
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
