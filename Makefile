.PHONY: install fast test lint pages release
PYTHON ?= .venv/bin/python
install:
	python3 -m venv .venv && .venv/bin/pip install -e '.[dev]'
fast:
	$(PYTHON) -m tests fast
test:
	$(PYTHON) -m tests
lint:
	$(PYTHON) -m tests lint
pages:
	$(PYTHON) docs/generate.py
release:
	$(PYTHON) -m tests release dist
