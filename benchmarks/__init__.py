"""What the speed claims rest on: `python -m benchmarks` measures, docs/benchmarks.md reports."""

import os

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # processes start as those of users do: from byte code
