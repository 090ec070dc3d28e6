"""Every endpoint of the OpenAPI document, with a body that its model accepts."""

from typing import NamedTuple
from urllib.parse import quote

METHODS = ("get", "put", "post", "patch", "delete")
TEAMS = [{"place": 1, "players": [{"player": "{player}"}]}, {"place": 2, "players": [{"player": "{other}"}]}]
REPORT = {"id": "{match_id}", "played_at": "2026-01-09T12:00:00Z", "teams": TEAMS}
LINE_UP = [{"players": ["{player}"]}, {"players": ["{other}"]}]
BODIES = {  # by operation id; in braces what a test fills in
    "create_ladder": {"name": "{ladder}", "system": "elo"},
    "change_settings": {"title": "another"},
    "change_rules": {"system": "glicko"},
    "open_season": {"title": "another"},
    "report_match": REPORT,
    "report_matches": {"matches": [REPORT]},
    "insert_late_matches": {"matches": [REPORT]},
    "get_odds": {"teams": LINE_UP},
    "announce_match": {"teams": LINE_UP, "expires_in": 600},
    "tell_presence": {"players": [{"player": "{player}", "back": True, "team": 0}]},
    "request_backfill": {"seats": [1, 0]},
    "close_match": {"teams": [{"place": 1}, {"place": 2}]},
    "cancel_match": {"reason": "a test"},
    "set_queue": {"policy": {"team_size": 1}},
    "pause_queue": {"message": "a test"},
    "start_experiment": {"policy": {"even_spread": 50.0}},
    "set_filter": {"within": 5},
    "join_queue": {"members": [{"player": "{player}", "avoid": ["{other}"]}], "queues": ["{queue}"]},
    "accept_offer": {},
    "decline_offer": {},
    "preview_rules": {"system": "glicko"},
    "start_ratings": {"id": "a start", "ratings": {"{player}": 1600}},
    "void_match": {"match_id": "{match_id}"},
    "ban_player": {"player": "{player}"},
    "create_key": {"name": "another", "scopes": ["read"], "ladders": ["{ladder}"]},
    "issue_token": {"player": "{player}", "ladders": ["{ladder}"]},
    "issue_login_link": {"player": "{player}"},
    "link_account": {"issuer": "steam", "subject": "{player}"},
    "rename_player": {"to": "{other}"},
    "merge_player": {"into": "{other}"},
    "create_webhook": {"url": "https://93.184.216.34/hook", "events": ["match.rated"], "ladder": "{ladder}"},
}


class Operation(NamedTuple):
    """An endpoint: its method, its path with placeholders, and its parameters in the query."""

    id: str
    method: str
    path: str
    query: frozenset[str]

    @property
    def writes(self):
        return self.method != "get" and self.id not in ("get_odds", "preview_rules")

    def ask(self, asking, values, headers, **query):
        """The answer with these values in path, body and query; values that a path lacks are left out."""
        path = self.path
        for name, value in values.items():
            path = path.replace(f"{{{name}}}", quote(str(value), safe=""))
        return asking.request(
            self.method.upper(), path, json=filled(BODIES.get(self.id), values), headers=headers, params=query
        )


def operations(document):
    """All operations of the document."""
    listed = []
    for path, methods in document["paths"].items():
        for method in METHODS:
            if method in methods:
                parameters = methods[method].get("parameters", [])
                query = frozenset(one["name"] for one in parameters if one["in"] == "query")
                listed.append(Operation(methods[method]["operationId"], method, path, query))
                has_body = "requestBody" in methods[method]
                assert has_body == (listed[-1].id in BODIES), f"{listed[-1].id}: give it a body in BODIES"
    return listed


def filled(body, values):
    """The body with each placeholder replaced by its value."""
    if isinstance(body, dict):
        return {filled(name, values): filled(value, values) for name, value in body.items()}
    if isinstance(body, list):
        return [filled(value, values) for value in body]
    if isinstance(body, str) and body.startswith("{"):
        return values[body.strip("{}")]
    return body
