# Each target is one command that a person would type; `make` alone lists them.

.PHONY: bench bench-peers check-types fuzz guide run types web test-web test-browser

# Without npm the server still runs, with a page that says how to get the client.
run: ## build the client and the server, start on 127.0.0.1:8000 with data in ./data (ARGS=--demo for bots)
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory web; else echo "npm is missing: building without the web client"; fi
	cargo run --release -p folkmoot -- $(ARGS)

web: ## build the browser client into web/dist
	cd web && npm ci --silent && npm run --silent build

test-web: ## type checks and unit tests of the browser client
	cd web && npm ci --silent && npm run --silent check && npm run --silent test

# The guide is a book of Markdown; its code blocks are tests of althing, so this only lays it out.
guide: ## build the guide into target/guide
	@test -x .tools/bin/mdbook || cargo install --quiet mdbook --locked --no-default-features --features search --root .tools \
		|| { echo "the guide needs mdbook, which cargo could not install; it reads as Markdown in docs/guide/src"; exit 1; }
	.tools/bin/mdbook build docs/guide

TYPES = cargo run --quiet -p folkmoot-protocol --features typescript --example generate_types --

types: ## generate the TypeScript of the protocol from its Rust types
	$(TYPES)

check-types: ## fail when the generated TypeScript is out of date
	$(TYPES) --check

SECONDS ?= 30
fuzz: ## fuzz the frame decoder for SECONDS; needs a nightly toolchain and cargo-fuzz
	cd fuzz && mkdir -p corpus && cargo +nightly fuzz run --fuzz-dir . decode_frame corpus seeds/decode_frame -- -max_total_time=$(SECONDS)

bench: ## measure Althing on the named workloads (WORKLOADS="ask-1 spawn" for some)
	cargo run --release -p althing-bench -- $(WORKLOADS)

bench-peers: ## build the peers, measure them in turn with Althing, write bench/results and the plot
	cargo run --release -p althing-bench -- peers $(WORKLOADS)
