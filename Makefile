# Each target is one command that a person would type; `make` alone lists them.

.PHONY: web test-web test-browser

web: ## build the browser client into web/dist
	cd web && npm ci --silent && npm run --silent build

test-web: ## type checks and unit tests of the browser client
	cd web && npm ci --silent && npm run --silent check && npm run --silent test
