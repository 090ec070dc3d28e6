"""A certified OpenID Connect provider of its own process, installed from the npm registry; and people who log in."""

import base64
import hashlib
import re
import secrets
import shutil
import signal
import socket
import subprocess
from html import unescape
from pathlib import Path
from urllib.parse import parse_qs, quote, urlencode, urljoin, urlsplit

import httpx
import pytest

FOLDER = Path(__file__).parent / "identity_provider"
UNREACHED = r"ENOTFOUND|ECONNREFUSED|ETIMEDOUT|EAI_AGAIN|ECONNRESET|network"
SITE = "http://localhost"
CLIENT, SECRET, API = "ranks", "a secret of the test", "https://ranks.example"


class Provider:
    """A provider on a port of its own. url: its issuer."""

    def __init__(self, folder):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self._folder, self.url, self._site = folder, f"http://127.0.0.1:{self._port}", SITE

    def start(self, site=SITE):
        """Start it for a web site at this address."""
        self._site = site
        backs = [f"{site}/login/{name}/back" for name in ("openid", "operators")]
        self._process = subprocess.Popen(
            ["node", "provider.mjs", str(self._port), *backs],
            cwd=self._folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout.readline() == "ready\n"

    def stop(self):
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self._process.stdout.close()

    def restart(self):
        """Start it again, with new keys."""
        self.stop()
        self.start(self._site)

    def log_in(self, url, name, *, cancel=False):
        """Log in as a person does who was sent to this URL; return the URL to which they are sent back."""
        with httpx.Client(timeout=30) as browser:
            answer = browser.get(url)
            while True:
                if answer.is_redirect:
                    location = urljoin(str(answer.url), answer.headers["location"])
                    if not location.startswith(self.url):
                        return location
                    answer = browser.get(location)
                    continue
                assert answer.status_code == 200, answer.text
                if cancel:
                    answer = browser.get(urljoin(self.url, re.search(r'href="([^"]+/abort)"', answer.text)[1]))
                    continue
                form = unescape(re.search(r'<form[^>]*action="([^"]+)"', answer.text)[1])
                asked = "login" if 'name="login"' in answer.text else "consent"
                answer = browser.post(form, data={"prompt": asked, "login": name, "password": "any"})

    def token(self, name):
        """A signed access token of this person for API, as their game gets it from the provider."""
        back, verifier = f"{SITE}/login/openid/back", secrets.token_urlsafe(32)
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        asked = {"client_id": CLIENT, "response_type": "code", "redirect_uri": back, "scope": "openid play"}
        asked |= {"resource": API, "code_challenge": challenge, "code_challenge_method": "S256"}
        returned = self.log_in(f"{self.url}/auth?{urlencode(asked)}", name)
        form = {"grant_type": "authorization_code", "redirect_uri": back, "code_verifier": verifier}
        form |= {"code": parse_qs(urlsplit(returned).query)["code"][0], "resource": API}
        answer = httpx.post(f"{self.url}/token", data=form, auth=(CLIENT, quote(SECRET)), timeout=30)
        assert answer.status_code == 200, answer.text
        return answer.json()["access_token"]


def install(tmp_path_factory):
    """A folder with the provider; skips the test where npm or its registry cannot be reached."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed, so there is no OpenID Connect provider to log in at")
    folder = tmp_path_factory.mktemp("provider")
    shutil.copytree(FOLDER, folder, dirs_exist_ok=True)
    command = ["npm", "install", "--no-audit", "--no-fund", "--no-package-lock", "--fetch-retries=0"]
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200, check=False)
    if ended.returncode != 0 and re.search(UNREACHED, ended.stdout + ended.stderr):
        pytest.skip("the npm registry cannot be reached, so there is no OpenID Connect provider to log in at")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return folder


@pytest.fixture(scope="session")
def provider(tmp_path_factory):
    made = Provider(install(tmp_path_factory))
    made.start()
    yield made
    made.stop()
