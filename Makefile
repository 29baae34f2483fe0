# `make run` opens the dashboard, `make test` runs every test. Both make .venv on a fresh machine first.
PYTHON ?= python3
VENV   := .venv
PY     := $(VENV)/bin/python

.PHONY: run install test bench clean

run: $(VENV)/.app
	$(PY) -m eagle3dash serve

install: $(VENV)/.dev

# One thread a process: small tensors lose more to waiting than they gain from a second thread.
test: $(VENV)/.dev
	OMP_NUM_THREADS=1 $(PY) -m pytest -n auto --dist loadfile

bench: $(VENV)/.dev
	$(PY) -m tests.bench

$(PY):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "eagle3dash needs Python 3.11 or newer; found: $$($(PYTHON) --version 2>&1). Try: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "Python's venv module is missing: apt-get install python3-venv"; exit 1; }

$(VENV)/.app: requirements.txt | $(PY)
	$(PY) -m pip install -q --disable-pip-version-check -r requirements.txt
	@touch $@

$(VENV)/.dev: requirements-dev.txt $(VENV)/.app
	$(PY) -m pip install -q --disable-pip-version-check -r requirements-dev.txt
	@sh .ci/chromium
	@touch $@

clean:
	rm -rf $(VENV)
