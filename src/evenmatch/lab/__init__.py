"""Evaluation of rating systems, ladders and matchmakers: backtests, simulations, charts and reports."""
