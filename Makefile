# Each target is one command that a person would type; `make` alone lists them.

.PHONY: guide web test-web test-browser

web: ## build the browser client into web/dist
	cd web && npm ci --silent && npm run --silent build

test-web: ## type checks and unit tests of the browser client
	cd web && npm ci --silent && npm run --silent check && npm run --silent test

# The guide is a book of Markdown; its code blocks are tests of althing, so this only lays it out.
guide: ## build the guide into target/guide
	@test -x .tools/bin/mdbook || cargo install --quiet mdbook --locked --no-default-features --features search --root .tools \
		|| { echo "the guide needs mdbook, which cargo could not install; it reads as Markdown in docs/guide/src"; exit 1; }
	.tools/bin/mdbook build docs/guide
