"""The OpenAPI document: what FastAPI generates, with the parts that it cannot know."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from pydantic import BaseModel
from pydantic.json_schema import JsonSchemaMode, models_json_schema

from evenmatch.http.middleware import HEADER, LONGEST, OF_API, REPEATED, takes_key
from evenmatch.http.models.base import Problem
from evenmatch.http.models.ladders import StartingRatings, StartingRatingsSet
from evenmatch.http.models.reports import BatchOutcome, BatchReport, LateMatches, MatchReport, Receipt
from evenmatch.http.models.tickets import JoinRequest, OfferAnswer, TicketChange
from evenmatch.http.models.webhook_events import EVENT_MODELS, FoundServer
from evenmatch.http.problems import MEDIA_TYPE, OTHERS, STARTING, TABLE

Json = dict[str, Any]
REF = "#/components/schemas/{model}"
STRUCTS = (
    *(Problem, MatchReport, BatchReport, LateMatches, Receipt, BatchOutcome, StartingRatings, StartingRatingsSet),
    *(JoinRequest, OfferAnswer, TicketChange),
)  # FastAPI does not describe these
ALWAYS_COMPLETE = {"TicketChange", "StartingRatingsSet"}  # structs of responses that contain their defaults
PROBLEMS = {
    400: ("Malformed", "The request cannot be read"),
    401: ("Unauthorized", "A valid key or token is needed"),
    403: ("Forbidden", "The key does not allow this"),
    404: ("Unknown", "Nothing with this name exists"),
    409: ("Conflict", "This conflicts with existing data, or the same request is still running"),
    413: ("TooLarge", "The body is too large"),
    422: ("BadValue", "A value is not accepted"),
    429: ("TooManyRequests", "Too many requests"),
    503: ("Unavailable", "The database does not answer, or too many requests are waiting"),
}
REPEATABLE = (429, 503)
LIMITS = ("RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset")
HEADERS = {
    "ETag": ("string", "Send it back as If-None-Match; while nothing has changed, the answer is 304."),
    "Retry-After": ("integer", "Seconds to wait before the request is sent again."),
    "RateLimit-Limit": ("integer", "Requests that the caller may send at once."),
    "RateLimit-Remaining": ("integer", "Requests that are left now."),
    "RateLimit-Reset": ("integer", "Seconds until all requests are available again."),
    "X-Request-Id": ("string", "Identifies the request in the log."),
}
IDEMPOTENCY_KEY = {
    "name": HEADER,
    "in": "header",
    "required": False,
    "schema": {"type": "string", "minLength": 1, "maxLength": LONGEST},
    "description": "A new random text for each request. A request repeated with the same text within 24 hours "
    f"is not carried out again: it gets the first answer, with the header {REPEATED}.",
}
SIGNATURE = {
    "type": "apiKey",
    "in": "header",
    "name": "Authorization",
    "description": "`Evenmatch-HMAC-SHA256 key=em_…, timestamp=SECONDS, nonce=TEXT, signature=HEX`: the HMAC-SHA256 of "
    "`timestamp.nonce`, the method, the path with its query and the body, joined by line feeds. It is keyed with the "
    "SHA-256 of the key, which is not sent. `key` is the first 13 characters of the key.",
}
OF_DELIVERIES = {
    "Evenmatch-Event": "The event.",
    "Evenmatch-Delivery": "Identifies the request, also when it is repeated.",
    "Evenmatch-Timestamp": "Seconds since the Unix epoch.",
    "Evenmatch-Signature": "`v1=` and the hexadecimal HMAC-SHA256 of the timestamp, a dot and the body, keyed with the "
    "secret of the webhook.",
}


def complete(document: Json) -> Json:
    """Complete the document that FastAPI generated, in place, and return it."""
    document["servers"] = [{"url": "/", "description": "The service that this document comes from"}]
    components = document.setdefault("components", {})
    components["schemas"] = schemas = {**components.get("schemas", {}), **_further_schemas()}
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    components["headers"] = {
        name: {"description": meaning, "schema": {"type": kind}} for name, (kind, meaning) in HEADERS.items()
    }
    components["responses"] = {name: _problem(status, title) for status, (name, title) in PROBLEMS.items()}
    components.setdefault("securitySchemes", {})["signature"] = SIGNATURE
    for method, path, operation in operations(document):
        _complete_operation(method, path, operation, schemas)
    document["webhooks"] = {event: {"post": _webhook(event)} for event in EVENT_MODELS}
    for name in _named([operation.get("requestBody", {}) for _, _, operation in operations(document)], schemas):
        _describe_defaults(schemas[name])
    return document


def operations(document: Json) -> Iterator[tuple[str, str, Json]]:
    """(method in upper case, path, operation) of every operation."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path, operation


def _further_schemas() -> Json:
    schemas: Json = msgspec.json.schema_components(STRUCTS, ref_template="#/components/schemas/{name}")[1]
    for struct in STRUCTS:
        if hasattr(struct, "EXAMPLE"):
            schemas[struct.__name__]["examples"] = [struct.EXAMPLE]
    for name, schema in schemas.items():
        if name not in ALWAYS_COMPLETE:
            _describe_defaults(schema)
    slugs = {kind.slug for _, kind in TABLE} | {kind.slug for kind in (*OTHERS.values(), STARTING)}
    schemas["Problem"]["properties"]["type"]["enum"] = sorted(f"urn:evenmatch:problem:{slug}" for slug in slugs)
    bodies: list[type[BaseModel]] = [*EVENT_MODELS.values(), FoundServer]
    models: list[tuple[type[BaseModel], JsonSchemaMode]] = [(model, "serialization") for model in bodies]
    events: Json = models_json_schema(models, ref_template=REF)[1]["$defs"]
    return {**schemas, **events, "TicketEvent": TICKET_EVENT}


TICKET_EVENT = {
    "type": "object",
    "description": "An event of a ticket's stream: its fields are the lines `id`, `event` and `data` of the event.",
    "properties": {
        "id": {"type": "integer", "description": "The `change` of the ticket."},
        "event": {
            "type": "string",
            "enum": ["ticket", "announced", "rated"],
            "description": "announced: the match has a connection; rated: it changed ratings; ticket: anything else.",
        },
        "data": {"$ref": REF.format(model="TicketOut")},
    },
    "required": ["id", "event", "data"],
}


def _problem(status: int, title: str) -> Json:
    names = ("X-Request-Id", *(("Retry-After",) if status in REPEATABLE else ()))
    content = {MEDIA_TYPE: {"schema": {"$ref": REF.format(model="Problem")}}}
    return {"description": title, "headers": _headers(*names), "content": content}


def _headers(*names: str) -> Json:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _complete_operation(method: str, path: str, operation: Json, schemas: Json) -> None:
    """Add the key of repeated writes, headers, the other way to authenticate, and the errors that can occur."""
    is_secured = "security" in operation
    if takes_key(method, path):
        operation["parameters"] = [*operation.get("parameters", []), IDEMPOTENCY_KEY]
    if is_secured:
        operation["security"] = [*operation["security"], {"signature": []}]
    for status, response in operation["responses"].items():
        if status.startswith("2"):
            is_read = method == "GET" and path.startswith(OF_API) and "application/json" in response.get("content", {})
            limits = LIMITS if is_secured else ()
            response["headers"] = _headers("X-Request-Id", *limits, *(("ETag",) if is_read else ()))
    operation["responses"].pop("422", None)  # FastAPI's own
    for status in sorted(_problems(method, path, operation, schemas)):
        operation["responses"][str(status)] = {"$ref": f"#/components/responses/{PROBLEMS[status][0]}"}


def _problems(method: str, path: str, operation: Json, schemas: Json) -> set[int]:
    """The statuses of the errors that an operation can give. Its route declares those that no rule tells."""
    parameters = operation.get("parameters", [])
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    fields = schemas.get(body.get("$ref", "").rpartition("/")[2], {}).get("properties", {})
    named = {*fields, *(one["name"] for one in parameters)}
    statuses = {int(status) for status in operation["responses"] if status >= "4"}
    if "security" in operation:
        statuses |= {401, 403, 429, 503}
    if "{" in path or named & {"ladder", "ladders"}:
        statuses.add(404)
    if any(one["in"] != "path" or one["schema"].get("type") != "string" for one in parameters):
        statuses.add(422)
    if body:
        statuses |= {400, 413, 422}
    if takes_key(method, path):
        statuses.add(409)
    return statuses


def _webhook(event: str) -> Json:
    """The request that a webhook receives, and what it should answer."""
    model = EVENT_MODELS[event]
    content = {"application/json": {"schema": {"$ref": REF.format(model=model.__name__)}}}
    found = {"application/json": {"schema": {"$ref": REF.format(model=FoundServer.__name__)}}}
    again = "Any other answer, or none within 10 seconds: the delivery is repeated later."
    accepted = (
        {"200": {"description": "The server of the match.", "content": found}, "default": {"description": again}}
        if event == "server.wanted"
        else {
            "2XX": {"description": "The delivery has arrived."},
            "410": {"description": "The delivery is not repeated."},
            "default": {"description": again},
        }
    )
    return {
        "operationId": f"receive_{event.replace('.', '_')}",
        "tags": ["webhooks"],
        "summary": model.__doc__,
        "parameters": [
            {"name": name, "in": "header", "required": True, "schema": {"type": "string"}, "description": meaning}
            for name, meaning in OF_DELIVERIES.items()
        ],
        "requestBody": {"required": True, "content": content},
        "responses": accepted,
    }


def _named(part: object, schemas: Mapping[str, Json], found: set[str] | None = None) -> set[str]:
    """The names of the schemas that a part of the document refers to, directly or through others."""
    names = set() if found is None else found
    if isinstance(part, dict):
        name = str(part.get("$ref", "")).rpartition("/")[2]
        if name in schemas and name not in names:
            names.add(name)
            _named(schemas[name], schemas, names)
    for inner in part.values() if isinstance(part, dict) else part if isinstance(part, list) else ():
        _named(inner, schemas, names)
    return names


def _describe_defaults(schema: Json) -> None:
    """Move the defaults of fields that may be left out into their descriptions.

    Generators of types take a field with a default for one that is always there, as in a response.
    """
    for field in schema.get("properties", {}).values():
        if "default" in field:
            default = field.pop("default")
            shown = json.dumps(default, ensure_ascii=False)
            meaning = field.get("description", "")
            if shown not in ("null", "[]", "{}") and "default" not in meaning.lower():
                field["description"] = f"{meaning} Default: {shown}.".strip()
