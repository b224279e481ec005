# The commands of everyday work. Needs Python 3.11 or newer with pip, and nothing else.

UV := $(shell command -v uv 2>/dev/null || echo .tools/bin/uv)
RUN := $(UV) run --frozen
EXAMPLES ?= 200000

# As it was typed: make reads a dollar sign as a variable, and runs $(shell …), each time a value is used.
override Q := $(value Q)
export Q
# The tests start a hundred processes: what Python compiled for the first is kept for the rest.
unexport PYTHONDONTWRITEBYTECODE
# Three processes for two cores: some tests wait for a process or a server, and each process collects all tests.
PYTEST := pytest -n 3 --dist loadfile --no-loadscope-reorder

# What `make install` adds to what is there: EXTRAS="postgres office". Without, it makes .venv as small as it can be.
EXTRAS ?=

.PHONY: help setup install demo init ask chat run test coverage lint size check golden fuzz soak pictures bench

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: .venv/.made ## Make .venv with everything, the built-in model included

install: | $(filter .tools/%,$(UV)) ## Make .venv for a server: no development tools, no built-in model
	UV_NO_CACHE=1 $(UV) sync --frozen --no-dev --quiet --compile-bytecode $(EXTRAS:%=--extra %) $(if $(EXTRAS),--inexact)
	$(if $(EXTRAS),,@rm -f .venv/.made .venv/.collected)

demo: setup ## Watch an example: written by hand, needs no key
	@.venv/bin/council demo

init: setup ## Set up a council of your own, by a few questions
	@.venv/bin/council init

ask: setup ## Ask a council: it asks for your question (or Q="your question")
	@.venv/bin/council ask $${Q:+-- "$$Q"}

chat: setup ## Use this terminal as a channel: ask, follow up, find past answers
	@.venv/bin/council chat

test: setup .venv/.collected ## Run the tests
	$(RUN) $(PYTEST)

coverage: setup ## Run the tests and say which lines they leave out
	$(RUN) coverage erase
	$(RUN) coverage run -m $(PYTEST)
	$(RUN) coverage combine --quiet
	$(RUN) coverage report

run: setup ## Serve Discord and Slack
	@.venv/bin/council run

lint: setup ## Check form, types, imports and dependencies
	$(RUN) ruff format --check .
	$(RUN) ruff check .
	$(RUN) pyright
	$(RUN) lint-imports
	$(RUN) deptry .

size: setup ## Count lines of Python by package, against the budgets that only fall
	$(RUN) python -m bench.size

check: lint size test ## Everything CI checks

golden: setup ## Record golden runs and snapshots again; read git diff afterwards
	GOLDEN=record $(RUN) pytest -p no:xdist -m "soak or not soak" --ignore tests/golden/test_processes.py \
		--snapshot-update tests/golden $$(git grep -l SnapshotAssertion tests)

fuzz: setup ## Try each property with 200,000 fresh examples (EXAMPLES=n for others)
	$(RUN) pytest -p tests.fuzz --timeout 0 --hypothesis-profile fuzz -m hypothesis -n 2 --dist load --maxschedchunk 2 --examples $(EXAMPLES)

soak: setup ## Run the slow proofs
	$(RUN) pytest -m soak

pictures: setup ## Draw what people see, from real runs (wants chromium and npm)
	npm ci --silent --prefix pictures
	$(RUN) python -m pictures

bench: setup ## Measure speed, as ratios in one run
	$(RUN) python -m bench

.venv/.made: pyproject.toml uv.lock | $(filter .tools/%,$(UV))
	$(UV) sync --frozen --quiet --compile-bytecode --extra doors --extra inputs --extra local
	@.venv/bin/python -m compileall -q -j 0 bot council storage tests
	@touch $@

# pytest and Hypothesis cache what they read of each file, and of Unicode: once, instead of in all three processes at once.
# What is wrong with a file is reported by the run itself.
.venv/.collected: | .venv/.made
	@$(RUN) pytest --collect-only --quiet > /dev/null 2>&1 || true
	@$(RUN) python -c "from hypothesis.internal.charmap import intervals_from_codec as read; read('utf-8')"
	@touch $@

# By version and hash: what else an index has under that name isn't installed.
.tools/bin/uv: .uv.txt
	python3 -m pip install --quiet --disable-pip-version-check --no-cache-dir --upgrade --only-binary :all: \
		--require-hashes --requirement .uv.txt --target .tools
	@touch $@
