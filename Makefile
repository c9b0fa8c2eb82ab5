# make run    measures two questions on the newest PyTorch release and the one before it, in about ten minutes, and says what changed
# make run QUESTIONS="saved_tensors selection"   asks others; `torch-history run` asks all
# make test   checks of the code, the tests that install nothing, and one release from end to end: about ten minutes
# make help   everything else

PYTHON ?= python3.11
QUESTIONS ?= intersection batching
BIN := .venv/bin
UV := $(BIN)/uv --no-config

ALONE := fleet or alone or (attack and not releases)
PYTEST := $(BIN)/python -m pytest --durations=20
BESIDE := $(PYTEST) -m "not (releases or end_to_end or $(ALONE))" -n auto --maxprocesses=8 --dist=loadfile

.PHONY: help run test test-all test-fast test-rest lint lint-python lint-scripts npm slurm fleet bench-clock bench-deciding bench-rounds yardstick size browser lock document pack pictures publish sync clean

help:
	@grep -E '^# make' Makefile | cut -c3-

.venv/ready: requirements.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "torch-history needs Python 3.11 or newer: '$(PYTHON)' is not on this machine. Install it, or name another: make run PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "$$(sed -nE 's/^(uv==[^ ]+).*/\1/p' requirements.lock)"
	$(UV) pip sync --quiet --compile-bytecode --python $(BIN)/python --require-hashes requirements.lock
	$(UV) pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@

run: .venv/ready
	$(BIN)/torch-history run --budget 490s $(QUESTIONS:%=--question %)
	$(BIN)/torch-history publish

test: lint-python
	@status=0; $(BESIDE) || status=1; \
	$(PYTEST) -m end_to_end || status=1; exit $$status

# make test-rest   what make test leaves out: three releases (15 GB), attacks, and Slurm with FLEET=1
test-rest: .venv/ready
	@status=0; $(PYTEST) -m "releases and not ($(ALONE))" -n 2 --dist=loadfile || status=1; \
	$(PYTEST) -m "$(ALONE)" || status=1; exit $$status

# make test-all   every test
test-all: test test-rest

# make test-fast   the tests that install nothing
test-fast: .venv/ready
	$(BESIDE)

# make lint   lint-python and lint-scripts
lint: lint-python lint-scripts

# make lint-python   ruff, mypy, import-linter, and shellcheck
lint-python: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/shellcheck .ci/* tools/in_kit/measure tools/in_kit/torch-history

# make lint-scripts   ESLint and the TypeScript compiler on the site's scripts; needs Node 18 and npm, which make npm installs
lint-scripts: tools/js/node_modules/.package-lock.json
	@cd tools/js && npm run --silent lint

tools/js/node_modules/.package-lock.json: tools/js/package-lock.json
	@command -v npm >/dev/null || { echo "The site's scripts are checked with npm, which is not on this machine: 'make npm' installs it."; exit 1; }
	cd tools/js && npm ci --silent --no-audit --no-fund

# make npm   installs Debian's npm, which lint-scripts needs
npm:
	@command -v npm >/dev/null || { apt-get update --quiet && apt-get install --yes --quiet --no-install-recommends npm; }

# make browser   installs Debian's Chromium, which the browser tests open the site in
browser:
	@command -v chromium >/dev/null || { apt-get update --quiet && apt-get install --yes --quiet --no-install-recommends chromium; }

# make slurm   installs Debian's Slurm and munge, which the fleet's tests start on this machine's loopback
slurm:
	@PATH=$$PATH:/usr/sbin; command -v slurmctld >/dev/null && command -v munged >/dev/null || { \
		command -v apt-get >/dev/null || { echo "The fleet's tests need Slurm and munge, and there is no apt-get to install them: install slurmctld, slurmd and munge by hand."; exit 1; }; \
		[ "$$(id -u)" = 0 ] || { echo "The fleet's tests need Slurm and munge, which only root can install: run 'make slurm' as root."; exit 1; }; \
		apt-get update --quiet && DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet --no-install-recommends slurm-wlm munge || \
		{ echo "Debian's slurm-wlm and munge could not be installed: is its package index in reach?"; exit 1; }; }

# make fleet   runs the fleet's test on a Slurm of its own; a minute, and never more than ten
fleet: .venv/ready slurm
	@FLEET=1 timeout --signal=INT --kill-after=20 600 $(BIN)/python -m pytest -m fleet tests/test_fleet.py || \
		{ status=$$?; [ $$status != 124 ] || echo "The fleet's tests were not done after 600 seconds, and were stopped."; exit $$status; }

# make bench-clock   whether our clock agrees with torch.utils.benchmark; takes three minutes
bench-clock: .venv/ready
	$(BIN)/python -m research.clock

# make bench-deciding OTHER=FOLDER MINUTES=4 LOADS="0 1 4"   decided comparisons a minute beside so many busy processes, of this clone and another
bench-deciding: .venv/ready
	$(BIN)/python -m research.deciding $(if $(OTHER),--other $(OTHER)) $(if $(MINUTES),--minutes $(MINUTES)) $(if $(LOADS),--loads "$(LOADS)") $(if $(QUESTION),--question $(QUESTION))

# make bench-rounds OTHER=FOLDER   where the seconds of a round go in this clone and another, and what asv run takes; goes on where it stopped
bench-rounds: .venv/ready
	$(BIN)/python -m research.rounds $(if $(OTHER),--other $(OTHER)) $(if $(QUESTION),--question $(QUESTION))

# make yardstick   how often this program and four other detectors find changes; writes docs/generated/yardstick.md
yardstick: .venv/ready
	$(BIN)/python -m research.yardstick

# make size   lines, rooms, arrows, commands, options, words and results; exit code 1 beyond a cap
size: .venv/ready
	@$(BIN)/python -m tools.size

# make publish   builds the site from results/
publish: .venv/ready
	$(BIN)/torch-history publish

# make sync   adds releases that the package index has and the axis lacks, and pins what they need
sync: .venv/ready
	$(BIN)/python -m tools.sync

# make pictures   publishes the site and takes its pictures for the docs; needs Chromium
pictures: publish
	$(BIN)/python -m tools.pictures html

# make pack   compresses the lines in results/ before they are committed; not while something is measured
pack: .venv/ready
	$(BIN)/python -m tools.pack_results

# make document   writes what the docs take from results/
document: .venv/ready
	$(BIN)/python -m tools.document

# make lock   pins the tool's own environment anew, with a developer's tools and without, and what a kit carries for Python 3.10 to 3.13
lock: .venv/ready
	$(UV) pip compile --quiet --group kit --universal --python-version 3.10 --generate-hashes --no-header --upgrade --output-file kit.lock
	$(UV) pip compile --quiet pyproject.toml --extra compare --group dev --generate-hashes --python-version 3.11 --no-header --upgrade --output-file requirements.lock
	$(UV) pip compile --quiet pyproject.toml --extra compare --group build --constraint requirements.lock --generate-hashes --python-version 3.11 --no-header --upgrade --output-file tool.lock

# make clean   removes the tool's environment, the releases' environments and the site
clean:
	rm -rf .venv env html
