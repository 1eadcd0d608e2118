# `make` lists what can be done. Works with GNU make 3.81 (macOS) and with spaces in the checkout's path.
.DEFAULT_GOAL := help
.PHONY: help run test chaos chaos-full mutants bench bench-full bench-peers bench-ui check format lock wheel clean FORCE

PIP := .venv/bin/python -m pip --disable-pip-version-check

# What is installed is up to date if this stamp exists: it changes with the locks and when the checkout moves.
STATE := $(shell { pwd -P; cat requirements*.lock pyproject.toml; } 2>/dev/null | cksum | cut -d' ' -f1)
RUN_STAMP := .venv/.installed-$(STATE)
DEV_STAMP := .venv/.installed-dev-$(STATE)

# A virtual environment whose interpreter does not start any more is made anew.
ifneq ($(shell .venv/bin/python -c 'print("starts")' 2>/dev/null),starts)
.venv/bin/python: FORCE
endif
FORCE:

# Prints version and path of an interpreter that fits; one that does not, or does not even start (a shim of a
# version that is not installed), prints nothing.
PROBE := import ensurepip, ssl, sys, sysconfig, venv; \
	final = sys.version_info.releaselevel == "final" and not sysconfig.get_config_var("Py_GIL_DISABLED"); \
	final and sys.version_info >= (3, 11) and print(*sys.version_info[:3], sys.executable)
CANDIDATES := python3.14 python3.13 python3.12 python3.11 python3 "$$HOME"/.pyenv/versions/*/bin/python3

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | while IFS='	' read -r name text; do \
		printf '  make %-10s %s\n' "$$name" "$$text"; done

run: $(RUN_STAMP) ## Start onthedot with its own PostgreSQL; Ctrl-C finishes what runs and stops all
	@exec .venv/bin/onthedot serve $(ARGS)

# Tests with a browser have an event loop of their own, which one that fails leaves to the tests behind it.
APART := $(if $(findstring tests/browser,$(ARGS)),,--ignore=tests/browser)

test: $(DEV_STAMP) ## Run the tests (ARGS="-k name" chooses, ARGS=tests/browser those that need a browser)
	.venv/bin/python -m pytest -n 2 --dist loadfile --max-worker-restart 1 $(APART) $(ARGS)

chaos: $(DEV_STAMP) ## Break a running onthedot in every way, some minutes; ARGS="--seed 4711" repeats a plan
	.venv/bin/python -m tests.chaos $(ARGS)

chaos-full: $(DEV_STAMP) ## The same as often as is promised
	.venv/bin/python -m tests.chaos --full $(ARGS)

mutants: $(DEV_STAMP) ## Check that the tests know wrong engines (ARGS="--only fence" chooses)
	.venv/bin/python -m tests.chaos.mutants $(ARGS)

check: $(DEV_STAMP) ## Check format, style and types
	.venv/bin/ruff format --check .
	.venv/bin/ruff check .
	.venv/bin/mypy

bench: $(DEV_STAMP) ## Measure the engine: speed and precision, beside bare statements and bare timers (minutes)
	.venv/bin/python -m benchmarks.engine $(ARGS)

bench-full: $(DEV_STAMP) ## Measure the same for long: soak, 20 million in the history, a million at once (an hour)
	.venv/bin/python -m benchmarks.engine --full $(ARGS)

bench-peers: $(DEV_STAMP) ## Measure onthedot beside other schedulers, which it installs (ten minutes)
	.venv/bin/python -m benchmarks.peers $(ARGS)

bench-ui: $(DEV_STAMP) ## Measure the pages of the dashboard on 10,000 jobs and a million finished executions
	.venv/bin/python -m benchmarks.ui $(ARGS)

format: $(DEV_STAMP) ## Format the code and mend what can be mended
	.venv/bin/ruff format .
	.venv/bin/ruff check --fix .

wheel: $(DEV_STAMP) ## Build sdist and wheel into dist/
	rm -rf dist
	.venv/bin/python -m build --no-isolation

lock: .venv/bin/python ## Resolve the dependencies anew into requirements.lock and requirements-dev.lock
	$(PIP) install --quiet uv
	printf '%s\n' hatchling editables | $(COMPILE) pyproject.toml - --extra embedded -o requirements.lock
	printf '%s\n' hatchling editables | \
		$(COMPILE) pyproject.toml - --extra embedded --group dev -c requirements.lock -o requirements-dev.lock

# Hashes and versions only: nothing of the machine or of its package index may get into the locks.
COMPILE := .venv/bin/uv pip compile --quiet --universal --python-version 3.11 --upgrade --generate-hashes \
	--custom-compile-command "make lock" --no-annotate --no-emit-index-url --no-emit-find-links

clean: ## Remove the virtual environment and everything built
	rm -rf .venv dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(RUN_STAMP): | .venv/bin/python
	@echo "Installing what onthedot needs ..."
	@rm -f .venv/.installed-*
	@$(PIP) install --quiet --require-hashes --no-deps -r requirements.lock
	@$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(DEV_STAMP): $(RUN_STAMP)
	@echo "Installing what its development needs ..."
	@$(PIP) install --quiet --require-hashes --no-deps -r requirements-dev.lock
	@touch $@

.venv/bin/python:
	@rm -rf .venv
	@newest=$$(for python in $(CANDIDATES); do "$$python" -c '$(PROBE)' 2>/dev/null; done \
		| sort -k1,1n -k2,2n -k3,3n | tail -n 1 | cut -d' ' -f4-); \
	if [ -z "$$newest" ]; then \
		echo "onthedot needs Python 3.11 or newer with venv (Debian, Ubuntu: apt install python3-venv)" >&2; exit 1; \
	fi; \
	echo "Making .venv with $$newest"; \
	"$$newest" -m venv .venv
