"""OpenStack Swift with its S3 interface in one process, on a folder and loopback; ends when standard input ends.

    python -W ignore tests/object_store_server.py FOLDER ACCESS_KEY SECRET_KEY

Prints the port of the S3 interface when it answers. Four servers as in an installation of several machines (proxy,
account, container, object), each on a socket of its own, with one replica of everything.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import eventlet
import eventlet.wsgi
from eventlet import tpool
from swift.common import utils, wsgi
from swift.common.ring import RingBuilder
from swift.common.utils import NullLogger

KINDS = ("account", "container", "object")
BACKEND = """
[DEFAULT]
swift_dir = {folder}
devices = {folder}/devices
mount_check = false
disable_fallocate = true
log_address = {folder}/no-syslog

[pipeline:main]
pipeline = {kind}-server

[app:{kind}-server]
use = egg:swift#{kind}
"""
PROXY = """
[DEFAULT]
swift_dir = {folder}
log_address = {folder}/no-syslog

[pipeline:main]
pipeline = catch_errors cache listing_formats s3api tempauth bulk slo proxy-server

[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
allow_account_management = true

[filter:catch_errors]
use = egg:swift#catch_errors
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:1
[filter:listing_formats]
use = egg:swift#listing_formats
[filter:s3api]
use = egg:swift#s3api
location = us-east-1
[filter:bulk]
use = egg:swift#bulk
[filter:slo]
use = egg:swift#slo
[filter:tempauth]
use = egg:swift#tempauth
user_{user} = {secret} .admin
"""


def main(folder: Path, access_key: str, secret_key: str) -> None:
    """Write the configuration, serve, and end with standard input."""
    utils.eventlet_monkey_patch()
    (folder / "devices" / "disk").mkdir(parents=True)
    (folder / "swift.conf").write_text("[swift-hash]\nswift_hash_path_suffix = tests\n")
    sockets = {kind: eventlet.listen(("127.0.0.1", 0)) for kind in (*KINDS, "proxy")}
    for kind in KINDS:
        write_ring(folder, kind, sockets[kind].getsockname()[1])
        (folder / f"{kind}.conf").write_text(BACKEND.format(folder=folder, kind=kind))
    (folder / "proxy.conf").write_text(
        PROXY.format(folder=folder, user=access_key.replace(":", "_"), secret=secret_key)
    )
    utils.set_swift_dir(str(folder))
    for kind, listener in sockets.items():
        app = wsgi.loadapp(str(folder / f"{kind}.conf"), global_conf={"log_name": kind})
        eventlet.spawn(
            eventlet.wsgi.server, listener, app, NullLogger(), protocol=wsgi.SwiftHttpProtocol, log_output=False
        )
    print(sockets["proxy"].getsockname()[1], flush=True)
    tpool.execute(sys.stdin.read)
    os._exit(0)


def write_ring(folder: Path, kind: str, port: int) -> None:
    """One partition space, one device."""
    ring = RingBuilder(part_power=4, replicas=1, min_part_hours=0)
    ring.add_dev(
        {"id": 0, "region": 1, "zone": 1, "weight": 1.0, "ip": "127.0.0.1", "port": port, "device": "disk"}
        | {"replication_ip": "127.0.0.1", "replication_port": port}
    )
    ring.rebalance()
    ring.get_ring().save(str(folder / f"{kind}.ring.gz"))


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
