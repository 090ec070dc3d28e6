"""The page of docs/reference/ about the JSON API, from its OpenAPI document."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any

METHODS = ("get", "post", "put", "patch", "delete")
HEAD = """# The JSON API

What `evenmatch serve` answers. `GET /v1/openapi.json` has the same as an OpenAPI document. Send a key as
`Authorization: Bearer em_…`; bodies and answers are JSON; errors are `application/problem+json`
(see [problems](#problems)); lists have `items` and `next`, which is sent back as `cursor`.
[Run it for a game](../how-to/service.md) shows it at work.
"""
LADDER = "/v1/ladders/{ladder}"
TASKS = (  # of the short version
    ("create a ladder, list ladders", "POST /v1/ladders", "GET /v1/ladders"),
    ("report a match, or many", f"POST {LADDER}/matches", f"POST {LADDER}/matches/batch"),
    ("show why a rating moved", f"GET {LADDER}/matches/{{match_id}}/results/{{player}}"),
    ("show standings, or one player", f"GET {LADDER}/standings", f"GET {LADDER}/players/{{player}}"),
    ("predict a match", f"POST {LADDER}/odds"),
    ("create a queue, or change its policy", f"PUT {LADDER}/queues/{{queue}}"),
    ("queue a party, follow its ticket", f"POST {LADDER}/tickets", f"GET {LADDER}/tickets/{{ticket}}/events"),
    ("accept or decline", f"POST {LADDER}/tickets/{{ticket}}/accept", f"POST {LADDER}/tickets/{{ticket}}/decline"),
    ("announce a match that is being played", f"PUT {LADDER}/live/{{match_id}}"),
    ("void a match, ban a player", f"POST {LADDER}/voids", f"POST {LADDER}/bans"),
    ("make a token for a player, or a key", "POST /v1/tokens", "POST /v1/keys"),
    ("get a request for each event", "POST /v1/webhooks"),
)


def document() -> dict[str, Any]:
    """The OpenAPI document of this version."""
    from evenmatch.http.app import endpoints  # noqa: PLC0415 - an extra, which other pages do without
    from evenmatch.http.options import Options  # noqa: PLC0415
    from evenmatch.http.server import site_over  # noqa: PLC0415
    from evenmatch.operations.service import Service  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as folder, Service.open(str(Path(folder, "empty.db"))) as service:
        return endpoints(site_over(service, Options.model_construct(**_defaults()))).openapi()


def _defaults() -> dict[str, Any]:
    """The settings as they are by default, whatever the environment says."""
    from evenmatch.http.options import Options  # noqa: PLC0415

    return {name: field.default for name, field in Options.model_fields.items()}


def page() -> str:
    """Every endpoint by subject, then the models, then the problems."""
    made = document()
    by_tag: dict[str, list[str]] = {}
    for path, item in made["paths"].items():
        for method in METHODS:
            if method in item:
                operation = item[method]
                by_tag.setdefault(operation["tags"][0], []).append(_endpoint(method, path, operation, made))
    parts = [HEAD, _short_version()]
    for tag, endpoints in by_tag.items():
        parts.append(f"## {tag[0].upper()}{tag[1:]}\n")
        parts += endpoints
    parts.append("## Models\n")
    parts += [_model(name, schema) for name, schema in sorted(made["components"]["schemas"].items())]
    parts.append(_problems())
    return "\n".join(parts)


def _short_version() -> str:
    """The endpoints that a game needs first, by what it wants to do."""
    rows = [f"| {task} | {', '.join(_link(endpoint) for endpoint in of)} |" for task, *of in TASKS]
    return "\n".join(("## In short\n", "| to | send |\n| --- | --- |", *rows, ""))


def _link(endpoint: str) -> str:
    """A link to an endpoint's heading, whose anchor has its letters, digits, hyphens and underscores alone."""
    anchor = re.sub(r"[^\w-]", "", endpoint.lower().replace(" ", "-"))
    return f"[`{endpoint}`](#{anchor})"


def _endpoint(method: str, path: str, operation: dict[str, Any], made: dict[str, Any]) -> str:
    told = [f"### {method.upper()} {path}\n", f"{operation.get('description', operation['summary']).strip()}\n"]
    rows = [
        f"| `{one['name']}` | {one['in']} | {_type(one['schema'])} | {one.get('description', '')} |"
        for one in operation.get("parameters", [])
    ]
    if rows:
        told.append("\n".join(("| parameter | in | type | meaning |\n| --- | --- | --- | --- |", *rows, "")))
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema")
    if body is not None:
        told.append(f"Body: {_type(body)}")
        shown = _example(body, made)
        told.append("" if shown is None else f"\n```json\n{json.dumps(shown, ensure_ascii=False)}\n```\n")
    for status, answer in sorted(operation["responses"].items()):
        if status.startswith("2"):
            schema = answer.get("content", {}).get("application/json", {}).get("schema")
            told.append(f"Answer {status}: {_type(schema) if schema else answer.get('description', 'nothing')}\n")
    return "\n".join(told)


def _example(schema: dict[str, Any], made: dict[str, Any]) -> Any:  # noqa: ANN401 - whatever JSON holds
    named = schema.get("$ref", "").rpartition("/")[2]
    examples = made["components"]["schemas"].get(named, {}).get("examples")
    return examples[0] if examples else None


def _model(name: str, schema: dict[str, Any]) -> str:
    told = [f"### {name}\n", f"{schema.get('description', '').strip()}\n"]
    required = set(schema.get("required", []))
    rows = [
        f"| `{field}` | {_type(one)} | {'' if field in required else 'may be left out'} "
        f"| {one.get('description', '').replace('|', '&#124;')} |"
        for field, one in schema.get("properties", {}).items()
    ]
    if rows:
        told.append("\n".join(("| field | type | | meaning |\n| --- | --- | --- | --- |", *rows, "")))
    return "\n".join(told)


def _type(schema: dict[str, Any]) -> str:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_type(one) for one in schema["anyOf"]))
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{one}`" for one in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        inner = schema.get("items") or (schema.get("prefixItems") or [{}])[0]
        return f"list of {_type(inner)}"
    if schema.get("type") == "object" and isinstance(schema.get("additionalProperties"), dict):
        return f"by name, {_type(schema['additionalProperties'])}"
    kind = {"string": "text", "integer": "whole number", "boolean": "yes or no", "object": "object"}
    return (
        "time" if schema.get("format") == "date-time" else kind.get(schema.get("type", ""), schema.get("type", "any"))
    )


def _problems() -> str:
    from evenmatch.http.problems import OTHERS, STARTING, TABLE  # noqa: PLC0415

    rows = [f"| `{kind.slug}` | {kind.status} | {kind.title} | `{error.__name__}` |" for error, kind in TABLE]
    rows += [f"| `{kind.slug}` | {kind.status} | {kind.title} | |" for kind in (*OTHERS.values(), STARTING)]
    head = (
        "## Problems\n\nThe `type` of a problem is `urn:evenmatch:problem:` and one of these; `detail` names the value "
        "and what would be accepted, `request_id` stands in the log too.\n\n"
        "| type | status | title | error |\n| --- | --- | --- | --- |"
    )
    return "\n".join((head, *dict.fromkeys(rows), ""))
