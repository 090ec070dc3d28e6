"""Answer evenmatch's requests for game servers: from a fixed list, or from Agones.

python game_servers.py list 203.0.113.7:7777 203.0.113.8:7777
python game_servers.py agones http://agones-allocator.agones-system arena-fleet

HOOK_SECRET holds the secret of the webhook with the event `server.wanted`.
"""

import hashlib
import hmac
import json
import os
import secrets
import sys
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock


class ServerList:
    """Servers that are always running: each match gets the one that was used longest ago."""

    def __init__(self, *addresses):
        self._addresses = list(addresses)

    def find(self, wanted):
        address = self._addresses.pop(0)
        self._addresses.append(address)
        return address


class Agones:
    """Servers of an Agones fleet, by the REST interface of its allocator service."""

    def __init__(self, url, fleet, namespace="default"):
        self._url, self._fleet, self._namespace = url, fleet, namespace

    def find(self, wanted):
        annotations = {"map": wanted["map"] or "", "players": json.dumps(wanted["teams"])}
        asked = {
            "namespace": self._namespace,
            "gameServerSelectors": [{"matchLabels": {"agones.dev/fleet": self._fleet}}],
            "metadata": {"annotations": {**annotations, "offer": str(wanted["offer"])}},
        }
        request = urllib.request.Request(f"{self._url}/gameserverallocation", json.dumps(asked).encode())
        request.add_header("Content-Type", "application/json")
        with urllib.request.urlopen(request, timeout=5) as answer:  # 429, if no server is free, raises HTTPError
            allocated = json.load(answer)
        return f"{allocated['address']}:{allocated['ports'][0]['port']}"


def is_ours(headers, body):
    """Whether evenmatch sent this, within the last five minutes."""
    secret, timestamp = os.environ["HOOK_SECRET"], headers["Evenmatch-Timestamp"]
    made = hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    return abs(time.time() - int(timestamp)) < 300 and hmac.compare_digest(f"v1={made}", headers["Evenmatch-Signature"])


def serve(servers, port=8080):
    """An HTTP server that answers with what `servers` finds."""
    given, one_at_a_time = {}, Lock()  # by number of the request: a repeated one gets the same server

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if not is_ours(self.headers, body):
                self.send_error(401)
                return
            number, wanted = self.headers["Evenmatch-Delivery"], json.loads(body)
            try:
                with one_at_a_time:
                    if number not in given:
                        given[number] = servers.find(wanted)
            except OSError as error:
                print(f"{number}: {error}", file=sys.stderr)
                self.send_error(503)  # evenmatch asks again
                return
            players = [slot["player"] for team in wanted["teams"] for slot in team]
            # Tell these tokens to the server, too, so that it lets in only these players.
            tokens = {player: secrets.token_urlsafe(16) for player in players}
            answer = json.dumps({"address": given[number], "tokens": tokens}).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

    return ThreadingHTTPServer(("127.0.0.1", port), Handler)


if __name__ == "__main__":
    kind, *rest = sys.argv[1:]
    serve({"list": ServerList, "agones": Agones}[kind](*rest)).serve_forever()
