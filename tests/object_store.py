"""A real object store for tests: OpenStack Swift behind its S3 interface, on a temporary folder and loopback.

A conftest offers it by the line

    from object_store import object_store  # noqa: F401

While the fixture lives, `s3://…` addresses of this process and of those that it starts lead there. Tests are skipped
where Swift is not installed (it is for Linux) or the temporary folder has no extended attributes, which it needs.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

SERVER = Path(__file__).parent / "object_store_server.py"
STOP_SECONDS = 10.0
USER = "evenmatch:tests"


class ObjectStore:
    """The store, from entering the context to leaving it; it ends with this process, however that ends."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="swift-"))
        self.secret = secrets.token_hex(16)
        self._server: subprocess.Popen[str] | None = None

    def __enter__(self) -> ObjectStore:
        command = [sys.executable, "-W", "ignore", str(SERVER), str(self.folder), USER, self.secret]
        with (self.folder / "log").open("wb") as log:
            self._server = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True, start_new_session=True
            )
        assert self._server.stdout is not None
        port = self._server.stdout.readline().strip()
        if not port:
            log_text = (self.folder / "log").read_text()
            self.close()
            raise RuntimeError(f"the object store did not start:\n{log_text}")
        self.endpoint = f"http://127.0.0.1:{port}"
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def environment(self) -> dict[str, str]:
        """The variables by which S3 clients find the store."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": USER,
            "AWS_SECRET_ACCESS_KEY": self.secret,
            "AWS_DEFAULT_REGION": "us-east-1",
            "AWS_EC2_METADATA_DISABLED": "true",
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        }

    def close(self) -> None:
        """End the server and remove what is stored."""
        assert self._server is not None
        assert self._server.stdin is not None
        self._server.stdin.close()
        try:
            self._server.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait()
        assert self._server.stdout is not None
        self._server.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def has_extended_attributes(folder: str) -> bool:
    """Whether files in this folder can have attributes, as Swift keeps them."""
    with tempfile.NamedTemporaryFile(dir=folder) as file:
        try:
            os.setxattr(file.name, "user.evenmatch", b"1")
        except OSError:
            return False
    return True


@pytest.fixture(scope="module")
def object_store() -> Iterator[ObjectStore]:
    """An empty store for the tests of a file, with the bucket `seasons`."""
    pytest.importorskip("swift", reason="the object store of the tests is OpenStack Swift, which is for Linux")
    s3fs = pytest.importorskip("s3fs", reason="object stores need s3fs (the extra cluster)")
    if not has_extended_attributes(tempfile.gettempdir()):
        pytest.skip("the object store of the tests needs a temporary folder with extended attributes: set TMPDIR")
    with ObjectStore() as store, pytest.MonkeyPatch.context() as patch:
        for name, value in store.environment().items():
            patch.setenv(name, value)
        s3fs.S3FileSystem.clear_instance_cache()
        s3fs.S3FileSystem().mkdir("seasons")
        yield store
        s3fs.S3FileSystem.clear_instance_cache()
