# The entry points. Each target installs what it lacks first; `make` alone explains them.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

export JOBS ?= $(shell nproc)

# What `make run` runs, on which data (its own if none is named), with which further arguments.
EXAMPLE ?= fashion_mnist
DATA ?=
ARGS ?=

.PHONY: help setup build run test check docs bench bench-peers format clean

help:  ## Show this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' Makefile | expand -t 20

setup:  ## Install the packages that a build needs
	@tools/setup

build: setup  ## Compile the release build into build/release
	@tools/build release

run: build  ## Train the example: make run [EXAMPLE=name] [DATA=folder] [ARGS='...']
	@tools/run_example $(EXAMPLE) $(if $(DATA),--data $(DATA)) $(ARGS)

test: build  ## Build and run all tests, the layer check and the format check
	@tools/run_tests

check: test  ## make test, then sanitizers, guard pages, window 1, fuzz corpora and clang-tidy
	@tools/check

docs: build  ## Write the documentation and the reference as HTML: build/docs/index.html
	@PYTHONPATH=build/release/python build/venv/bin/python tools/build_docs

bench: build  ## Measure Lamella, beside the peers where they are installed: bench/RESULTS.md
	@tools/run_benchmarks

bench-peers: setup  ## Install the peers that `make bench` compares with (about 2 GB)
	@tools/bench_peers

format: setup  ## Format the sources
	@tools/format --write

clean:  ## Remove what was built; keeps build/venv
	@find build -mindepth 1 -maxdepth 1 ! -name venv ! -name peers-venv -exec rm -rf {} +
