# Every target that needs it does the whole set-up by itself, on a bare Debian or Ubuntu.
SHELL := bash
# Else every process of the tests compiles all modules anew: half of the CPU of its start.
unexport PYTHONDONTWRITEBYTECODE
BIN := .venv/bin
# One more than two cores have to do: a test waits a third of its time, for servers and for time to
# pass. Each worker has its own servers and Spark: 2 to 3 GB.
PYTEST := $(BIN)/python -m pytest -n 3 --dist loadfile
JAVA := JAVA_HOME="$$(scripts/java_home.sh)"

.DEFAULT_GOAL := help
.PHONY: help setup unit room test slow matrix tidb promtool tidb-tests mariadb-suite fuzz-stream lint docs release demo bench lock clean

help: ## show this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 13

setup: ## install what is missing: system packages, .venv
	@scripts/setup.sh

unit: setup ## run the unit tests: they need no server and no Spark (ARGS='-k name' for a part)
	@$(PYTEST) --hypothesis-profile few tests/unit $(ARGS)

room: setup ## run the tests of a room: ROOM=actors/writing for its unit tests and the nearest integration tests
	@tests="$$($(BIN)/python -m scripts.room_tests '$(ROOM)')" && \
	$(JAVA) $(PYTEST) -m "not slow" $$tests $(ARGS)

test: setup ## run a sample of the tests, and the linters and type checks beside them: what each change must pass
	@failed=0; mkdir -p build; \
	$(MAKE) --no-print-directory lint >build/lint.log 2>&1 & \
	$(JAVA) $(PYTEST) --sample --durations=50 --durations-min=5 || failed=1; \
	wait $$! || failed=1; cat build/lint.log; \
	exit $$failed

whole: setup ## run all tests that are not slow, each with one kind of server and in one mode
	@$(JAVA) $(PYTEST) --one-kind --junitxml=build/tests.xml $(ARGS)

slow: setup ## run the slow tests: processes killed, servers away, the demo, the benchmark
	@$(JAVA) $(PYTEST) -m slow

soak: setup ## let tasks follow busy shards through schema changes and faults (ARGS='--minutes 120 --seed 7')
	@$(JAVA) $(BIN)/python -m tests.workload.soak $(ARGS)

matrix: tidb ## run rows, types, DDL, crashes and the copy from each kind of source into each kind of target, and make docs/reference/servers.md (hours; ARGS='-k copy' for a part)
	@failed=0; \
	$(JAVA) $(PYTEST) --matrix --matrix-report matrix.json tests/integration tests/acceptance $(ARGS) || failed=1; \
	$(BIN)/python -m scripts.servers_page matrix.json > docs/reference/servers.md; \
	exit $$failed

tidb: setup ## build TiDB's server for the tests, with the Go toolchain (some minutes, once)
	@$(BIN)/python -m scripts.build_tidb

promtool: setup ## build Prometheus' promtool for the tests of the alert rules, with the Go toolchain (some minutes, once)
	@$(BIN)/python -m scripts.build_promtool

tidb-tests: tidb ## run all tests that write to a target with TiDB as the target
	@$(JAVA) REPLICATOR_TEST_TARGET=tidb $(PYTEST)

mariadb-suite: setup ## follow MariaDB's own test files with a task, and compare (an hour)
	@$(JAVA) $(BIN)/python -m tests.workload.mariadb_suite --output mariadb-suite.json

fuzz-stream: setup ## break what sources send in all ways, and see that nothing is lost in silence (ARGS='--seconds 600')
	@$(JAVA) $(BIN)/python -m tests.fuzz.stream $(ARGS)

lint: setup ## run ruff, bandit and mypy, and warn of modules above 800 lines
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/bandit --quiet --configfile pyproject.toml --recursive cli.py replicator actors config
	$(BIN)/mypy
	@find cli.py replicator actors config tests benchmarks scripts -name '*.py' -exec wc -l {} + | awk '$$1 > 800 && $$2 != "total" \
		{print "warning: " $$2 " has " $$1 " lines: has it one subject?"}'

docs: setup ## build the site of the documentation in build/site, strictly and offline
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet

release: setup ## make the wheel, the site and the changes of the version in dist/
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m scripts.release

demo: setup ## merge live shards on private servers, and watch it
	@$(JAVA) $(BIN)/replicator demo

bench: setup ## measure everything against the servers' own means (hours; ARGS='--size small' for minutes)
	@$(JAVA) $(BIN)/python -m benchmarks $(ARGS)

lock: ## choose the newest versions of all dependencies
	scripts/lock.sh

clean: ## remove everything that was made here (the servers' cache is ~/.cache/replicator)
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis spark-warehouse
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
