# Each target is one command that a person would type; `make` alone lists them.

.PHONY: help chaos cluster packages loom memcheck miri soak torture mutants sim sim-mutants bench bench-against bench-peers metrics-cost check check-rust check-rest check-types check-web fix fuzz guide run types web web-gallery test test-rust test-cassandra3 test-sdk test-sdk-go test-web test-browser test-hunt-browser test-map-browser test-messenger-browser screenshots screens

help:
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | sort | column -t -s "$$(printf '\t')"

# Without npm the server still runs, with a page that says how to get the client.
run: ## build the client and the server, start on 127.0.0.1:8000 with data in ./data (ARGS=--demo for bots)
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory web; else echo "npm is missing: building without the web client"; fi
	cargo run --release -p folkmoot -- $(ARGS)

cluster: ## N nodes of one server at 127.0.0.1:8000 and on, with a PostgreSQL of their own or STORE=postgres://… (N=3)
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory web; else echo "npm is missing: building without the web client"; fi
	cargo build --release -p folkmoot
	@N="$(N)" STORE="$(STORE)" deploy/cluster

# What npm installs, once for each package-lock.json.
INSTALLED = node_modules/.package-lock.json
%/$(INSTALLED): %/package-lock.json
	cd $* && npm ci --silent
	touch $@

web: web/$(INSTALLED) ## build the browser client into web/dist
	cd web && npm run --silent build

web-gallery: web/$(INSTALLED) ## every part of the client in its states, at 127.0.0.1:5173/gallery.html
	cd web && npx vite --open /gallery.html

check-web: web/$(INSTALLED) tests/browser/$(INSTALLED) ## types of the browser client and of its browser tests
	cd web && npm run --silent check
	cd tests/browser && npm run --silent check

test-web: web/$(INSTALLED) ## unit tests of the browser client
	cd web && npm run --silent test

# The guide is a book of Markdown; its code blocks are tests of althing, so this only lays it out.
guide: ## build the guide into target/guide
	@test -x .tools/bin/mdbook || cargo install --quiet mdbook --locked --no-default-features --features search --root .tools \
		|| { echo "the guide needs mdbook, which cargo could not install; it reads as Markdown in docs/guide/src"; exit 1; }
	.tools/bin/mdbook build docs/guide

# The same for both, so that what they need is compiled once.
FEATURES = --features althing-store/cassandra,althing-store/postgres,althing-cluster/postgres,althing-cluster/etcd,althing-testkit/servers

check: ## everything that reads and judges: format, lints, docs, spelling, dependencies, file sizes, types
	@$(MAKE) --no-print-directory -j2 --output-sync=target check-rust check-rest

# Its steps wait for each other, as cargo builds one thing at a time in one place. With LINT_WITH_TESTS, clippy and rustdoc
# judge when `make test` compiles.
check-rust: headers check-types ## format, lints and docs of the Rust workspace
	cargo fmt --all --check
	@# As `make run` builds it: without the features that the tests need.
	$(if $(LINT_WITH_TESTS),@true,cargo check --package folkmoot --quiet)
	$(if $(LINT_WITH_TESTS),@true,cargo clippy --workspace --all-targets --quiet $(FEATURES) -- -D warnings)
	$(if $(LINT_WITH_TESTS),@true,RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet $(FEATURES))

check-rest: check-web ## what `make check` does beside the Rust workspace
	.ci/tools
	.tools/py/bin/typos
	.tools/py/bin/python .ci/dependencies
	.ci/file-sizes
	.ci/imports
	.ci/mutants

loom: ## every interleaving of the models: claim, lane, line, reply, and a topic's chunks
	RUSTFLAGS="--cfg althing_loom" CARGO_TARGET_DIR=target/loom cargo test --release -p althing --lib model::

memcheck: ## the runtime's tests under valgrind
	.ci/memcheck

miri: ## the runtime's tests under miri with strict provenance, where the nightly toolchain has it
	MIRIFLAGS="-Zmiri-strict-provenance -Zmiri-disable-isolation" cargo +nightly miri test -p althing --test runtime -- promises:: supervision:: drops::

KILLS ?= 200
soak: ## stops, kills and panics of actors at random under load for SECONDS; then processes that store are killed KILLS times (200)
	SECONDS=$(SECONDS) cargo run --release -p althing --example soak
	KILLS=$(KILLS) cargo test --workspace --test kill --test kills

# A run that fails prints the shrunk program and its seed; TORTURE_SEED=n runs one again.
torture: ## random programs on the runtime, checked against its promises, for SECONDS
	TORTURE_SECONDS=$(SECONDS) cargo test --release -p althing --test torture -- --nocapture

mutants: ## break the runtime on purpose, one promise at a time: the torture test must notice (MUTANTS="name" for some)
	crates/althing/tests/mutants/run $(MUTANTS)

fix: ## format, and apply what clippy can
	cargo fmt --all
	cargo clippy --workspace --all-targets --fix --allow-dirty --allow-staged --quiet
	cargo fmt --all

# The client is built first, because the server embeds it; the tests of real processes use the server that cargo built.
# With BUILT, programs that `cargo test --workspace` has built are used: for one package alone cargo would build them and what they
# depend on again, with other features.
# A test that starts a server waits for its first segment of the log.
test test-rust test-sdk test-sdk-go test-browser test-messenger-browser: export FOLKMOOT_LOG_SEGMENT_MIB = 4

# With what `make test` has built.
BESIDE = FOLKMOOT_BINARY="$${CARGO_TARGET_DIR:-$(CURDIR)/target}/debug/folkmoot" $(MAKE) --no-print-directory BUILT=1

# What measures how fast the client is comes last and alone.
test: ## every test
	$(MAKE) --no-print-directory -j2 --output-sync=target packages web
	touch crates/folkmoot/src/http/assets.rs
	$(MAKE) --no-print-directory test-rust
	$(BESIDE) -j2 --output-sync=target BROWSER_TESTS=people test-browser test-sdk test-web test-hunt-browser test-map-browser test-messenger-browser
	$(BESIDE) BROWSER_TESTS=speed test-browser
	@echo "all tests passed"

BUILD = $(if $(BUILT),@true,cargo build --quiet --package)

CHAOS_SECONDS ?= 60
packages: ## what the tests need of Debian: Chromium, Mosquitto, PostgreSQL, etcd, Java, Maven, valgrind
	.ci/packages

headers: ## what the workspace is compiled with of Debian: OpenSSL's headers
	.ci/packages headers

test-rust: ## tests of the Rust workspace, with CHAOS_SECONDS of actors being killed under load
	CHAOS_SECONDS=$(CHAOS_SECONDS) .ci/test-rust

# Not among `make test`: three nodes take a minute to start, and 2 GB. The build has no limit, the
# tests have ten minutes.
CASSANDRA3 = cargo test --workspace --quiet --test cassandra3 --test storage_contract
test-cassandra3: ## the stores on three real nodes of Cassandra, killed one after the other (ten minutes at most)
	$(CASSANDRA3) --no-run
	timeout 600 $(CASSANDRA3) -- --ignored --nocapture

test-sdk: ## the official JavaScript and Python SDKs talk to the real server, lose it and find it again
	.ci/twice tests/sdk/run

test-sdk-go: ## the official Go SDK's conversation with the real server, and its own tests; needs go 1.23 or later, and python 3
	$(BUILD) folkmoot
	cd tests/sdk/go && FOLKMOOT_BINARY="$${FOLKMOOT_BINARY:-$${CARGO_TARGET_DIR:-$(CURDIR)/target}/debug/folkmoot}" go test -count=1 ./...
	FOLKMOOT_BINARY="$${FOLKMOOT_BINARY:-$${CARGO_TARGET_DIR:-$(CURDIR)/target}/debug/folkmoot}" .ci/twice tests/sdk/published/run go

# The server embeds the client of the moment: both are built before the browser starts.
test-browser: $(if $(BUILT),,web) tests/browser/$(INSTALLED) ## people in a real browser against the real server
	$(if $(BUILT),@true,touch crates/folkmoot/src/http/assets.rs)
	$(BUILD) folkmoot
	$(BUILD) althing-testkit --features servers --example database
	cd tests/browser && npm run --silent test -- $(if $(BROWSER_TESTS),--project $(BROWSER_TESTS))

screenshots: web tests/browser/$(INSTALLED) ## take the pictures of docs/images anew
	touch crates/folkmoot/src/http/assets.rs
	cargo build --quiet --package folkmoot
	cd tests/browser && SCREENSHOTS=1 npm run --silent test -- screenshots.test

screens: web tests/browser/$(INSTALLED) ## every screen in each look, as pictures in SCREENS=folder (target/screens)
	touch crates/folkmoot/src/http/assets.rs
	cargo build --quiet --package folkmoot
	cd tests/browser && SCREENS="$(or $(SCREENS),$(CURDIR)/target/screens)" npm run --silent test -- screens.test

test-hunt-browser: examples/treasure-hunt/tests/browser/$(INSTALLED) ## the treasure hunt in Chromium (SCREENSHOT=path takes its picture)
	$(BUILD) treasure-hunt
	cd examples/treasure-hunt/tests/browser && $(CURDIR)/.ci/twice npm test

test-map-browser: examples/realtime-map/browser/$(INSTALLED) ## the vehicle map in Chromium (SCREENSHOT=path takes its picture); needs chromium and mosquitto
	$(BUILD) realtime-map
	cd examples/realtime-map/browser && $(CURDIR)/.ci/twice npm test

test-messenger-browser: examples/messenger/$(INSTALLED) ## the messenger in Django, two people in Chromium in each mode of publishing, while the relay is killed
	$(BUILD) folkmoot
	cd examples/messenger && FOLKMOOT_BINARY="$${FOLKMOOT_BINARY:-$${CARGO_TARGET_DIR:-$(CURDIR)/target}/debug/folkmoot}" $(CURDIR)/.ci/twice npm test --silent

TYPES = cargo run --quiet -p folkmoot-protocol --features typescript --example generate_types --

types: ## generate the TypeScript of the protocol from its Rust types
	$(TYPES)

check-types: ## fail when the generated TypeScript is out of date
	$(TYPES) --check

SECONDS ?= 30
fuzz: ## fuzz the frame decoder and the log reader for SECONDS each; needs a nightly toolchain and cargo-fuzz
	cd fuzz && for target in decode_frame log_reader; do mkdir -p corpus/$$target && \
		cargo +nightly fuzz run --fuzz-dir . $$target corpus/$$target seeds/$$target -- -max_total_time=$(SECONDS) || exit 1; done

SEEDS ?= 1000
CLUSTER_FROM ?= 0
# A seed that fails is printed; CLUSTER_SEED=n runs it alone and tells what happened, line by line.
sim: ## a whole cluster in one thread under seeded faults, SEEDS of them for each test, the first of them CLUSTER_FROM
	CLUSTER_SEEDS=$(SEEDS) CLUSTER_FROM=$(CLUSTER_FROM) cargo test --release -p althing-cluster --lib simulation -- --nocapture

SEED ?= $(shell date +%s)
# Ends with 1 if a promise was broken; what the nodes wrote down is kept then.
chaos: ## three real nodes, etcd and PostgreSQL under kills, stops and cut links for SECONDS (SEED=n), then checked
	cargo run --release -p althing-cluster --example chaos -- --seconds $(SECONDS) --seed $(SEED)

sim-mutants: ## break the cluster's protocol on purpose: the simulation must notice (MUTANTS="name" for some)
	crates/althing-cluster/tests/mutants/run $(MUTANTS)

bench: ## measure Althing on the named workloads (WORKLOADS="ask-1 spawn" for some)
	cargo run --release -p althing-bench -- $(WORKLOADS)

metrics-cost: ## measure what always-on metrics cost: with and without in turn, 60 rounds, with an interval
	cargo run --release -p althing-bench -- metrics-cost

bench-against: ## measure in turn with an older revision (REV=2a33faa, WORKLOADS="ask-1 spawn" for some)
	cargo run --release -p althing-bench -- $(or $(WORKLOADS),all) --against $(REV)

bench-peers: ## build the peers, measure them in turn with Althing, write bench/results and the plot
	cargo run --release -p althing-bench -- peers $(WORKLOADS)
