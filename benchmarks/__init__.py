"""What the speed claims rest on: `python -m benchmarks` measures, docs/benchmarks.md reports."""
