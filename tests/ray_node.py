"""`ray start` for a node that listens on loopback alone; Ray puts the machine's outward address in place of 127.0.0.1.

python tests/ray_node.py start --head --port 6379 …
"""

import sys

from ray._private import services
from ray.scripts.scripts import main

services.resolve_ip_for_localhost = lambda host: host

if __name__ == "__main__":
    sys.argv[0] = "ray"
    main()
