"""nginx and Caddy with the configuration of deploy/, on a free port of loopback."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

DEPLOY = Path(__file__).parents[1] / "deploy"
NGINX = shutil.which("nginx", path=f"{os.environ['PATH']}{os.pathsep}/usr/sbin")
CADDY = shutil.which("caddy")
PATIENCE = 20.0  # seconds


@contextmanager
def nginx(folder: Path, upstream: str, *, directory: str | None = None) -> Iterator[str]:
    """Run nginx before the process at this address and port; yields its URL.

    directory  the text of directory.conf; None: that of deploy/
    """
    port = _free_port()
    shutil.copytree(DEPLOY, folder / "deploy")
    site, main = folder / "deploy" / "nginx.conf", folder / "deploy" / "nginx-main.conf"
    site.write_text(site.read_text().replace("listen 8080 ", f"listen 127.0.0.1:{port} "))
    text = main.read_text().replace("/var/tmp", str(folder)).replace("worker_processes auto", "worker_processes 1")
    main.write_text(text)
    (folder / "deploy" / "upstream.conf").write_text(f"server {upstream};")
    if directory is not None:
        (folder / "deploy" / "directory.conf").write_text(directory)
    user = " user root;" if os.geteuid() == 0 else ""  # else it writes as nobody, who may not reach the folder
    with _running([NGINX, "-g", f"daemon off;{user}", "-c", main], port, folder / "nginx.log", {}) as url:
        yield url


@contextmanager
def caddy(folder: Path, upstream: str) -> Iterator[str]:
    """Run Caddy before the process at this address and port; yields its URL."""
    port = _free_port()
    file = folder / "Caddyfile"
    file.write_text((DEPLOY / "Caddyfile").read_text().replace("{\n", "{\n\tadmin off\n", 1))
    environment = {
        "SITE": f"http://:{port}",
        "PROCESSES": upstream,
        "HOME": str(folder),
        "XDG_CONFIG_HOME": str(folder),
        "XDG_DATA_HOME": str(folder),
    }
    command = [CADDY, "run", "--config", file, "--adapter", "caddyfile"]
    with _running(command, port, folder / "caddy.log", environment) as url:
        yield url


@contextmanager
def small_nginx(folder: Path, upstream: str) -> Iterator[str]:
    """Run nginx with deploy/nginx-site.conf, for any name, before the process at this address; yields its URL."""
    port = _free_port()
    site = (DEPLOY / "nginx-site.conf").read_text().replace("listen 80;", f"listen 127.0.0.1:{port};")
    site = site.replace("listen [::]:80;", "").replace("127.0.0.1:8080", upstream)
    main = (
        (DEPLOY / "nginx-main.conf").read_text().replace("/var/tmp", str(folder)).replace("nginx.conf;", "site.conf;")
    )
    (folder / "site.conf").write_text(site)
    (folder / "main.conf").write_text(main.replace("worker_processes auto", "worker_processes 1"))
    user = " user root;" if os.geteuid() == 0 else ""
    command = [NGINX, "-g", f"daemon off;{user}", "-c", folder / "main.conf"]
    with _running(command, port, folder / "nginx.log", {}) as url:
        yield url


@contextmanager
def small_caddy(folder: Path, upstream: str) -> Iterator[str]:
    """Run Caddy with deploy/small, for any name and without TLS, before this address and port; yields its URL."""
    port, file = _free_port(), folder / "Caddyfile"
    text = (DEPLOY / "small/etc/caddy/Caddyfile").read_text().replace("127.0.0.1:8080", upstream)
    file.write_text("{\n\tadmin off\n}\n" + text.replace("rank.example", f"http://:{port}"))
    command = [CADDY, "run", "--config", file, "--adapter", "caddyfile"]
    homes = dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"), str(folder))
    with _running(command, port, folder / "caddy.log", homes) as url:
        yield url


@contextmanager
def _running(command: list[object], port: int, log: Path, environment: dict[str, str]) -> Iterator[str]:
    with log.open("wb") as output:
        process = subprocess.Popen(
            list(map(str, command)), stdout=output, stderr=output, env={**os.environ, **environment}
        )
    url, deadline = f"http://127.0.0.1:{port}", time.monotonic() + PATIENCE
    try:
        while True:
            try:
                httpx.get(url)
                break
            except httpx.TransportError:
                assert time.monotonic() < deadline, log.read_text()
                time.sleep(0.05)
        yield url
    finally:
        process.terminate()
        process.wait(PATIENCE)


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
        return port
