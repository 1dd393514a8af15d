# A thin front door: CMake presets build, ctest tests, dev/ holds the scripts. `make help` lists it all.
JOBS ?= $(shell nproc)
FUZZ_SECONDS ?= 60
PADDLE_PYTHON ?= python3

# Tests wait for processes as much as they compute.
ctest = ctest --output-on-failure -j3 $(CTEST_ARGS) --test-dir
build = cmake --build $(1) -j $(JOBS) $(if $(2),--target $(2))
export SOAK_KILLS SOAK_RANK_KILLS SOAK_SEEDS
export TSAN_OPTIONS ?= suppressions=$(CURDIR)/dev/tsan.supp
sources = $(shell find argosy apps bench examples python tests -name '*.h' -o -name '*.cc' 2>/dev/null)

.NOTPARALLEL:
.PHONY: help setup build test test-build demo demo-build bench check-clang check-threads cuda wheel paddle-traces format lint lint-quick sanitize sanitize-asan sanitize-tsan \
        sanitize-short sanitize-asan-short sanitize-tsan-short fuzz soak test-slurm test-mpi \
        test-fresh clean

help: ## List the targets (default)
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' Makefile

setup: ## Install the Debian packages a build needs, and build/venv for Python; at once when they are there
	@dev/setup.sh base
	@dev/setup.sh python || true  # there is no Python package then, and the next line says so
	@dev/setup_python.sh $(if $(filter setup,$(MAKECMDGOALS)),--again) build

build: build/build.ninja ## Build all programs, examples and the Python package, no tests; programs land in build/bin/
	@$(call build,build,programs)

test-build: build/build.ninja  # everything
	@$(call build,build)

test: test-build ## Build everything and run all tests
	$(ctest) build

demo-build: build/build.ninja  # the library and the two programs that the demo runs
	@begin=$$(date +%s) && $(call build,build,argosy_cli fleetrun) && echo "demo: built in $$(($$(date +%s) - begin)) s"

demo: demo-build ## Train CTR-DNN on generated clicks with two servers and two workers, kill a server, then infer
	@dev/demo.sh

bench: build ## Print the speed of this machine as JSON; each figure beside its limit
	build/bin/argosy bench mlp --json
	build/bin/argosy bench train --json
	build/bin/argosy bench ctr --json
	build/bin/argosy bench parse --json
	build/bin/argosy bench table --json
	build/bin/argosy bench rpc --json
	build/bin/argosy bench ps --json
	build/bin/argosy bench launch --json

cuda: ## Compile every device kernel with nvcc for two architectures, in build-cuda/
	@dev/cuda.sh build-cuda $(JOBS)

wheel: build ## Pack what is built into wheels for pip, in build/wheels/
	@dev/wheels.sh build

paddle-traces: ## Record again what Paddle 2.6.2 computes, with PADDLE_PYTHON, a Python that has it
	$(PADDLE_PYTHON) dev/paddle_traces.py

format: ## Rewrite the C++ files in the house format
	@dev/setup.sh format
	clang-format -i $(sources)

lint: lint-quick build-clang/.tidy ## Format, layers, clang-tidy and a clang build, all without warnings
	@$(call build,build-clang) -- -k 0

lint-quick: ## The part of lint that takes seconds: format, layers, text
	@dev/setup.sh base format
	@clang-format --dry-run -Werror $(sources)
	@python3 dev/check_layers.py
	@python3 dev/check_python_layers.py
	@python3 dev/check_text.py

check-clang: check-threads ## The same, and clang-tidy over the newest files that the last 30 commits changed
	@dev/check_clang.py tidy build-check

check-threads: build-check/build.ninja ## clang's -Wthread-safety where Mutex is used
	@cmake build-check >/dev/null  # nothing is built there that would see new files and settings
	@dev/check_clang.py threads build-check

sanitize: sanitize-asan sanitize-tsan ## All tests under ASan + UBSan, then under TSan

sanitize-asan sanitize-tsan: sanitize-%: build-%/build.ninja
	@$(call build,build-$*)
	$(ctest) build-$*

sanitize-short: sanitize-asan-short sanitize-tsan-short ## The same for the layers with threads, files and bytes, as in CI

sanitize-asan-short sanitize-tsan-short: sanitize-%: build-%/build.ninja
	@$(call build,build-$*)
	$(ctest) build-$*

fuzz: build-fuzz/build.ninja ## Fuzz every parser and reader of files, FUZZ_SECONDS (60) each
	@$(call build,build-fuzz)
	dev/fuzz.sh build-fuzz/fuzz $(FUZZ_SECONDS)

soak: build/build.ninja ## Hours of bad luck: PART=kills, sim or chaos, all of them without; build/soak.md is the report
	@$(call build,build)
	@for part in $(or $(PART),sim kills chaos); do dev/soak.sh $$part build/soak.md || exit 1; done

test-slurm: build ## Run fleetrun under a real Slurm of three nodes on this machine (root)
	@dev/test_slurm.sh

test-mpi: build/build.ninja ## Run fleetrun under OpenMPI's mpirun, on one machine and over two (root)
	@dev/setup.sh mpi || true  # the test says that it skips itself
	@[ -e build/lib/argosy/libargosy_mpi.so ] || cmake build >/dev/null  # the backend is built where OpenMPI is found
	@$(call build,build,programs)
	@dev/test_mpi.sh

test-fresh: ## Prove `make demo` and `make test` in a bare Debian 12 chroot (root)
	@dev/setup.sh fresh
	dev/test_fresh.sh

clean: ## Remove all build folders
	rm -rf build build-*

# One folder per preset: build/ is release, build-asan/ is asan, and so on.
CCACHE ?= $$(command -v ccache)
configure = cmake --preset $(1) -DCMAKE_CXX_COMPILER_LAUNCHER="$(CCACHE)"

build/build.ninja: CMakePresets.json build/python.options | setup
	@$(call configure,release) $$(cat build/python.options)

build/python.options: setup
	@:

build-fuzz/build.ninja: CMakePresets.json | setup
	@dev/setup.sh fuzz
	@$(call configure,fuzz)

build-check/build.ninja: CCACHE =  # its commands are read by clang-tidy, which takes the first word for the compiler
build-clang/build.ninja build-check/build.ninja: build-%/build.ninja: CMakePresets.json | setup
	@dev/setup.sh lint
	@$(call configure,$*)

build-%/build.ninja: CMakePresets.json | setup
	@$(call configure,$*)

# clang-tidy runs beside the compiler, so ninja knows what to check again, but not that its rules changed.
build-clang/.tidy: .clang-tidy | build-clang/build.ninja
	@cmake --build build-clang --target clean
	@touch $@
