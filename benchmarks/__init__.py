"""What the speed claims rest on: `python -m benchmarks` measures, docs/benchmarks.md reports."""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

if find_spec("psutil") is None:  # `make demo` does not install what tests and benchmarks need
    sys.exit("benchmarks need packages that are not installed; to install them, run: python3 tools/dev.py bench --help")
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # processes start as those of users do: from byte code
sys.path.append(str(Path(__file__).parents[1] / "clients" / "python" / "src"))  # the Python client
