# Every target forwards to tools/dev.py, which makes .venv when needed.  ARGS holds further arguments: make test ARGS="-k elo"
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: demo test slow screenshots soak bench choosing docs lock lint dist clean help

demo test slow screenshots soak bench choosing docs lock lint dist clean help:
	@python3 tools/dev.py $@ $(ARGS)
