# make run and make test do their own set-up. See `make help`.
PYTHON ?= python3
PG ?= 18
# The file or the name in ARGS, if any; what is picked like this runs in pytest's own process.
PICKED := $(findstring .py,$(ARGS))$(filter -k% -m%,$(ARGS))
WORKERS ?= $(if $(PICKED),0,3)
VENV := .venv
BIN := $(VENV)/bin
RUFF := $(BIN)/ruff
PYTEST = $(BIN)/pytest -q --pg $(PG) -n $(WORKERS) --dist loadgroup --no-loadscope-reorder
# Random tests, and how much more of them `make prove` runs than `make test`.
RANDOM := fuzz or model or cron or versions or stops_at_random or test_spec
MORE := JOBQ_SPEC_STEPS=1500 JOBQ_FUZZ_MEMBERS=12 JOBQ_FUZZ_ROUNDS=4 JOBQ_MODEL_EXAMPLES=8 \
	JOBQ_CRON_CASES=700 JOBQ_STOPS=16 JOBQ_TEST_VERSIONED_JOBS=300
CONFIG := --config python/pyproject.toml
CODE := python sql tests docs clients

# Write the Python modules that are made of sql/, if their sources are newer.
GENERATED := $(shell $(PYTHON) python/generate.py)

# Modules are compiled when they are first imported, all others never.
unexport PYTHONDONTWRITEBYTECODE
# Of these pip would warn everybody, whatever they do; .venv is no system's Python.
export PIP_ROOT_USER_ACTION := ignore
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup setup-patroni run test lint lint-python lint-sql lint-prose format prove soak bench bench-peers fault update release jobq.sql jobq-core.sql dist docs site clean

help: ## Show this list
	@grep -hE '^[a-z.-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z.-]+):.*## (.*)/make \1\t\2/' | expand -t 18

setup: $(VENV)/.run ## Install what `make run` needs

run: $(VENV)/.run ## Run the examples on an embedded PostgreSQL or on DATABASE_URL; ARGS=--exit to end after them
	@$(BIN)/jobq run $(ARGS)

test: $(VENV)/.test ## Run the tests side by side, those of the SQL on PostgreSQL 15 too; ARGS="-k name" or ARGS=FILE for fewer
	@$(PYTEST) $(if $(findstring .py,$(ARGS)),,tests/python) $(if $(PICKED),,-m "not prove") $(ARGS)

lint: lint-python lint-sql lint-prose ## Check style, types, SQL, spelling and prose, and that rendering works and sqitch.plan is right
	@echo "plpgsql_check"; $(BIN)/pytest -q tests/python/test_plpgsql_check.py

lint-python: $(VENV)/.test
	@echo "ruff"; $(RUFF) check -q $(CONFIG) $(CODE)
	@$(RUFF) format -q --check $(CONFIG) $(CODE)
	@echo "mypy"; MYPYPATH=sql:docs:tests/python:tests/fault:tests/spec $(BIN)/mypy --config-file python/pyproject.toml --no-error-summary python/src sql tests/python tests/fault tests/spec

lint-sql: $(VENV)/.test
	@echo "render"; $(PYTHON) sql/render.py --check
	@echo "floors"; $(PYTHON) sql/floors.py
	@echo "squawk"; { $(BIN)/squawk $$(grep -L 'render.py\|check_function_bodies' deploy/*.sql) && \
		$(BIN)/squawk --assume-in-transaction sql/*/*.sql sql/*/private/*.sql; } >$(VENV)/squawk.log 2>&1 || { cat $(VENV)/squawk.log; exit 1; }

lint-prose: $(VENV)/.test
	@echo "codespell"; $(BIN)/codespell --toml python/pyproject.toml *.md docs sql deploy clients python/src
	@echo "prose"; $(BIN)/python docs/prose.py
	@echo "workflow"; $(BIN)/check-jsonschema -q --builtin-schema vendor.github-workflows .github/workflows/*.yml

format: $(VENV)/.test ## Format the Python code
	@$(RUFF) check -q --fix $(CONFIG) $(CODE); $(RUFF) format -q $(CONFIG) $(CODE)

fault: $(VENV)/.test ## Run jobq under faults and print what was lost (nothing); ARGS=--short for a minute of it, ARGS=patroni for failovers
	@PYTHONPATH=tests/python:tests/spec:sql $(BIN)/python tests/fault/run.py $(ARGS)

prove: $(VENV)/.test ## Check the models of tests/spec with Spin, and run the tests that take longer than `make test` should
	@$(PYTHON) tests/spec/prove.py
	@$(MORE) $(PYTEST) tests/python -m prove
	@$(MORE) $(PYTEST) tests/python -m "not prove" -k "$(RANDOM)"

soak: $(VENV)/.test ## Replay random loads against the specification for a million changes of state; ARGS="--steps 10000 --seed 7" for fewer
	@PYTHONPATH=sql:tests/python $(BIN)/python tests/spec/soak.py $(ARGS)

bench: $(VENV)/.test ## Print how fast jobs are done; PART=agents, http, console, delivery, deploy, schedules, pick_up, producers, flat, flow, drain, sessions, cores, scale, shards, worker, workflows, fan_in, steady, upgrade
	@$(BIN)/python tests/bench/bench$(PART:%=_%).py $(ARGS)

bench-peers: $(VENV)/.test ## Measure jobq and other queues side by side; ARGS="--systems a,b --rounds 1" for less
	@$(BIN)/python tests/bench/peers/run.py $(ARGS)

setup-patroni: $(VENV)/.test ## Install what `make fault ARGS=patroni` needs besides: etcd and Patroni
	@.ci/packages patroni
	@$(BIN)/python -m pip install -q 'patroni[etcd3,psycopg3]==4.1.5'

jobq.sql: ## Build jobq.sql, which installs everything with psql
	@$(PYTHON) sql/render.py > $@

jobq-core.sql: ## Build jobq-core.sql, the core without the features
	@$(PYTHON) sql/render.py 1 > $@

update: ## After a new topic, a new column or a change of a released topic: write sqitch.plan and lists of columns
	@$(PYTHON) sql/render.py --update

release: $(VENV)/.test ## Make a release: versions, tag, stored scripts, packages, commit: make release VERSION=1.0.0
	@.ci/release $(VERSION)

dist: $(VENV)/.test ## Build the packages of a release into dist/, and try each in an empty environment
	@.ci/dist

docs: $(VENV)/.test ## Write the reference from the database's comments
	@$(BIN)/python docs/reference.py
	@$(BIN)/python clients/typescript/generate.py

site: $(VENV)/.test ## Build the documents into .site/index.html
	@$(BIN)/python docs/reference.py
	@$(BIN)/sphinx-build -q -W --keep-going docs .site && echo "wrote .site/index.html"

clean: ## Remove the Python environment, caches, and the embedded database with its jobs
	@if [ -f .jobq/postgres/cluster/postmaster.pid ]; then \
		echo "the embedded database is running: stop 'make run' first" >&2; exit 1; fi
	@rm -rf $(VENV) .site .jobq .pytest_cache .mypy_cache .ruff_cache .hypothesis tests/python/.pytest_cache

$(VENV)/.run: python/pyproject.toml .ci/packages .ci/environment
	@.ci/packages run
	@$(PYTHON) .ci/environment http,delivery,examples,embedded
	@touch $@

$(VENV)/.test: python/pyproject.toml .ci/packages .ci/environment clients/typescript/package.json
	@.ci/packages run
	@.ci/packages test
	@$(PYTHON) .ci/environment dev
	@if command -v npm >/dev/null; then cd clients/typescript && npm install --silent --no-audit --no-fund; fi
	@touch $(VENV)/.run $@
