# Every entry point of the project. `make help` lists them.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { command -v $$p; break; }; done || true)
VENV := .venv
OLDEST_SPARK := 4.0.1
# The newest DuckDB of which PyPI has the extensions that read Delta and Iceberg, and make tables of TPC-DS: it reads what
# is exported.
DUCKDB_EXTENDED := 1.5.5
EFFORT ?= 1
SOAK ?= 300
HOSTILE ?= 600
VENV_OLDEST := .venv-spark-$(OLDEST_SPARK)
RUN := $(VENV)/bin
JAVA := $(if $(JAVA_HOME),$(JAVA_HOME)/bin/java,java)
# Bytecode is made when a module is first imported: most never are.
PIP_INSTALL := -m pip install --quiet --disable-pip-version-check --no-compile
# Spark's workers take PySpark from this archive, which has no bytecode, if it is there, and else from the package itself:
# that is 0.3 s in place of 1.2 for each kind of worker.
DROP_ARCHIVE = rm -f $(@D)/lib/python*/site-packages/pyspark/python/lib/pyspark.zip
PYTEST_SPARK := -m pytest tests/spark -p no:xdist --durations=10
# Delta's and Iceberg's connectors for Spark, which no newer Spark has yet.
LAKES := $(VENV_OLDEST)/lakes
# Half of what Spark's JVMs do until their first query is to load classes: tests take them from an archive in the environment.
# On the oldest Spark too few JVMs are started to pay for one.
CLASSES := spark-classes.jsa

# Spark takes whatever `python3` is on the PATH for its workers, unless told; and ours must be this one.
export PYSPARK_PYTHON := $(abspath $(RUN)/python)
export PYSPARK_DRIVER_PYTHON := $(PYSPARK_PYTHON)
export SPARK_LOCAL_IP ?= 127.0.0.1

# Spark starts Python workers by the hundred, and without bytecode each compiles all that it imports: 2.2 s in place of 0.9.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help
help:  ## List the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | while IFS=$$'\t' read -r name text; do printf '  make %-10s %s\n' "$$name" "$$text"; done

# The kind of a stranger that it shows is installed beside the environment, where tests look for our own kinds.
.PHONY: demo
demo: $(VENV)/.demo  ## Write real flights through Spark, index them, and see which blocks each query skips
	@$(RUN)/python $(PIP_INSTALL) --no-deps --upgrade --target build/demo ./examples/plugins/fuse-index-trigram
	@PYTHONPATH="$(CURDIR)/build/demo" $(RUN)/python -m benchmarks.demo

# Spark's tests wait more than they compute, so all three run at once, each as soon as its own environment is installed; a
# line is printed when it ends, with the suite's name before it.
SUITES := test-fast test-spark test-spark-oldest
NAMED = 2>&1 | sed -u 's/^/[$@] /'

# Tests commit by the thousand, and each commit waits for the disk a dozen times: their files lie in memory where there is
# room, and programs may be run there.
define FOLDER
folder=$$(mktemp -d -p /dev/shm 2>/dev/null || mktemp -d); \
if [ "$$(df -Pm "$$folder" | awk 'END {print $$4}')" -lt 4000 ] || ! { echo true >"$$folder/run"; chmod +x "$$folder/run"; "$$folder/run"; } 2>/dev/null; \
then rm -rf "$$folder"; folder=$$(mktemp -d); fi; trap 'rm -rf "$$folder"' EXIT
endef

# Runs that share a folder for their files get in each other's way when they delete those of former runs.
ALONE = $(FOLDER); PYTEST_DEBUG_TEMPROOT=$$folder

.PHONY: test
test: | java python  ## All tests, Spark's on the newest and the oldest supported Spark; EFFORT=2 runs every case, and EFFORT=4 draws more
	@FUSE_INDEX_EFFORT=$(EFFORT) $(MAKE) --no-print-directory -j 3 $(SUITES)

# Two at once: installing waits for the network and the disk in turns.
.PHONY: install
install: | java python
	@$(MAKE) --no-print-directory -j 2 $(VENV)/.dev $(LAKES)/.fetched

.PHONY: test-quick
test-quick: $(VENV)/.dev  ## The tests of storage, index kinds, the command line and the house, with half the draws: no Spark, so no Java
	@$(ALONE) FUSE_INDEX_EFFORT=0.5 $(RUN)/python -m pytest tests/test_house.py tests/storage tests/plugins tests/cli -n 2 --dist worksteal

# A room is a folder with tests, whichever it lies in: "catalog" is one of storage and one of Spark.
ROOMS = $(sort $(dir $(shell find tests -name 'test_*.py')))

.PHONY: check-room
check-room: $(VENV)/.dev  ## The tests of one room, for the inner loop; ROOM=commit ARGS="-k rebase"
	@folders="$(filter %/$(ROOM)/,$(ROOMS))"; \
	[ -n "$(ROOM)" ] && [ -n "$$folders" ] || { echo "Name a room: make check-room ROOM=commit; rooms are $(sort $(notdir $(ROOMS:/=)))." >&2; exit 1; }; \
	$(ALONE) $(RUN)/python -m pytest -q -p no:xdist $$folders $(ARGS)

# Lint takes one processor for a minute, and so goes beside the tests.
.PHONY: check
check: | java python  ## What CI runs: lint, types, import contracts, all tests
	@FUSE_INDEX_EFFORT=$(EFFORT) $(MAKE) --no-print-directory -j 4 lint $(SUITES)

.PHONY: bench
bench: $(VENV)/.bench  ## Compare with Databend, ClickHouse, DuckDB and plain Parquet; ARGS="--rows 1000000"
	$(RUN)/python -m benchmarks $(ARGS)

# An environment of its own, so that those who write code need not install what writes the site.
VENV_DOCS := .venv-docs

.PHONY: docs
docs: $(VENV_DOCS)/.docs  ## Build the site into build/site, and fail on any warning or link that leads nowhere
	@NO_MKDOCS_2_WARNING=1 $(VENV_DOCS)/bin/python -m mkdocs build --strict --quiet -f website/mkdocs.yml
	@echo "Open build/site/index.html"

.PHONY: package
package: $(VENV_DOCS)/.package  ## Build the wheel and the source archive into build/dist, and check both
	@rm -rf build/dist
	@$(VENV_DOCS)/bin/python -m build --outdir build/dist . >/dev/null
	@$(VENV_DOCS)/bin/python -m twine check --strict build/dist/*
	@$(VENV_DOCS)/bin/check-wheel-contents --toplevel fuse_storage,fuse_index,fuse_plugins build/dist/*.whl

$(VENV_DOCS)/.docs $(VENV_DOCS)/.package: $(VENV_DOCS)/.%: pyproject.toml | python
	@echo "Installing fuse-index[$*] into $(VENV_DOCS) (once)"
	@"$(PYTHON)" -m venv $(VENV_DOCS)
	@$(VENV_DOCS)/bin/python $(PIP_INSTALL) --constraint constraints.txt --editable '.[$*]'
	@touch $@

.PHONY: soak
soak: $(VENV)/.dev  ## A dozen processes change one table in every way, hot commits and tiering too, for minutes, and the outcome is replayed; SOAK=300
	FUSE_INDEX_SOAK_SECONDS=$(SOAK) $(RUN)/python -m pytest -s tests/index/test_crowd.py

.PHONY: hostile
hostile: $(VENV)/.dev  ## Kills, crashes, faulty stores, damage, strays and load, and what came of each; HOSTILE=600 ARGS="--only kills --seed 7"
	$(RUN)/python -m tests.hostile --seconds $(HOSTILE) $(ARGS)

.PHONY: lint
lint: $(VENV)/.dev lint-java
	$(RUN)/ruff format --check --quiet .
	$(RUN)/ruff check .
	$(RUN)/mypy
	$(RUN)/lint-imports

# Janino compiles these classes when Spark runs, and knows no type arguments: it needs casts that javac finds redundant.
# Manifests of Spark's jars name jars that are not there ("path").
JAVAC_LINT := -Xlint:all,-cast,-path -proc:none -Werror

.PHONY: lint-java
lint-java: $(VENV)/.dev $(VENV_OLDEST)/.dev
	@javac=$$(command -v "$${JAVA_HOME:+$$JAVA_HOME/bin/}javac" || command -v javac || true); \
	if [ -z "$$javac" ]; then \
	  echo "No javac was found (openjdk-17-jdk-headless has one), so no compiler has checked the Java sources but Spark's own." >&2; \
	  [ "$${CI:-}" != true ]; exit; \
	fi; \
	for venv in $(VENV) $(VENV_OLDEST); do \
	  classes=$$(mktemp -d); jars=$$(echo $$venv/lib/python*/site-packages/pyspark/jars); \
	  echo "$$javac $(JAVAC_LINT) (jars of $$venv)"; \
	  "$$javac" $(JAVAC_LINT) -d "$$classes" -cp "$$jars/*" $$(find fuse_index/spark/java -name "*.java") || { rm -rf "$$classes"; exit 1; }; \
	  rm -rf "$$classes"; \
	done

# Spark's tests on the newest Spark are the longest, one after the other: the others take what these leave of the processors.
.PHONY: test-fast
test-fast: $(VENV)/.dev
	@$(ALONE) nice -n 5 $(RUN)/python -m pytest --ignore tests/spark --ignore tests/lakes -n 2 --dist worksteal $(NAMED)

.PHONY: test-spark
test-spark: $(VENV)/.dev $(VENV)/$(CLASSES)
	@$(ALONE) $(RUN)/python $(PYTEST_SPARK) $(NAMED)

.PHONY: test-spark-oldest
test-spark-oldest: export PYSPARK_PYTHON := $(abspath $(VENV_OLDEST)/bin/python)
test-spark-oldest: export PYSPARK_DRIVER_PYTHON := $(abspath $(VENV_OLDEST)/bin/python)
test-spark-oldest: $(VENV_OLDEST)/.dev $(LAKES)/.fetched
	@$(ALONE) nice -n 2 $(VENV_OLDEST)/bin/python $(PYTEST_SPARK) tests/index/export -m "$(if $(filter 1,$(EFFORT)),not any_spark)" $(NAMED)
	@$(ALONE) nice -n 2 $(VENV_OLDEST)/bin/python -m pytest tests/lakes -p no:xdist --durations=10 $(NAMED)

$(VENV)/$(CLASSES): $(VENV)/.dev
	@echo "Writing $@ (once)"
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && \
	{ $(RUN)/python -m tests.spark.class_archive "$$folder" >"$$folder/log" 2>&1 || { cat "$$folder/log" >&2; exit 1; }; }

# Said before anything is installed: a newcomer should not download Spark to learn that Java is missing.
.PHONY: java
java:
	@version=$$("$(JAVA)" -version 2>&1 | sed -nE 's/.* version "(1\.)?([0-9]+).*/\2/p' | head -n 1 || true); \
	case "$$version" in \
	17|21) ;; \
	"") echo "Java 17 or 21 is needed for Spark, and '$(JAVA)' does not run: install one (such as openjdk-17-jre-headless) or set JAVA_HOME." >&2; exit 1 ;; \
	*) echo "Java 17 or 21 is needed for Spark, and '$(JAVA)' is Java $$version: install one of these or set JAVA_HOME." >&2; exit 1 ;; \
	esac

.PHONY: python
python: | java
	@if [ -z "$(PYTHON)" ]; then echo "Python 3.11 or newer is needed, and none is on the PATH: install one or run make PYTHON=/path/to/python." >&2; exit 1; fi
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	{ echo "Python 3.11 or newer is needed, and '$(PYTHON)' is not: run make PYTHON=/path/to/python." >&2; exit 1; }

$(VENV)/bin/python: | java python
	@echo "Making $(VENV) (once)"
	@"$(PYTHON)" -m venv $(VENV)

$(VENV)/.demo $(VENV)/.dev $(VENV)/.bench: $(VENV)/.%: pyproject.toml constraints.txt | java python $(VENV)/bin/python
	@echo "Installing fuse-index[$*] into $(VENV) (once; Spark alone is 430 MB)"
	@$(RUN)/python $(PIP_INSTALL) --constraint constraints.txt --editable '.[$*]'
	@$(DROP_ARCHIVE)
	@touch $@

$(VENV_OLDEST)/.dev: pyproject.toml constraints.txt | java python
	@echo "Installing fuse-index[dev] with Spark $(OLDEST_SPARK) into $(VENV_OLDEST) (once)"
	@"$(PYTHON)" -m venv $(VENV_OLDEST)
	@sed 's/^pyspark==.*/pyspark==$(OLDEST_SPARK)/; s/^duckdb==.*/duckdb==$(DUCKDB_EXTENDED)/' constraints.txt > $(VENV_OLDEST)/constraints.txt
	@$(VENV_OLDEST)/bin/python $(PIP_INSTALL) --constraint $(VENV_OLDEST)/constraints.txt --editable '.[dev]' \
	  $(foreach name,avro delta iceberg tpcds,duckdb-extension-$(name)==$(DUCKDB_EXTENDED))
	@$(DROP_ARCHIVE)
	@touch $@

# By the Ivy that Spark has among its jars: the connectors, and beside them Iceberg's own server of a REST catalogue.
FETCH = "$(JAVA)" -cp "$$(echo $(VENV_OLDEST)/lib/python*/site-packages/pyspark/jars/ivy-*.jar)" org.apache.ivy.Main \
  -cache "$$folder" -types jar bundle -warn
$(LAKES)/.fetched: tests/lakes/ivy.xml tests/lakes/rest.xml | $(VENV_OLDEST)/.dev
	@echo "Fetching the connectors of Delta and Iceberg, and a catalogue, into $(@D) (once; 90 MB)"
	@rm -rf $(@D) && mkdir $(@D)
	@folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && { \
	  $(FETCH) -ivy tests/lakes/ivy.xml -retrieve "$(@D)/[artifact]-[revision].[ext]" && \
	  $(FETCH) -ivy tests/lakes/rest.xml -retrieve "$(@D)/rest/[artifact](-[classifier])-[revision].[ext]"; } >"$$folder/log" 2>&1 || \
	{ grep -v '^\.' "$$folder/log" >&2; echo "The connectors of Delta and Iceberg (tests/lakes/*.xml) could not be fetched from Maven: see above." >&2; exit 1; }
	@touch $@
