"""The endpoints as one web page, made from the OpenAPI document. It loads nothing from other hosts."""

from __future__ import annotations

from html import escape
from typing import Any

from evenmatch.http.openapi import Json, operations

STYLE = """:root{color-scheme:light dark}body{font:1rem/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto}
summary{cursor:pointer}code{font-size:.95em;overflow-wrap:anywhere}td,th{text-align:left;padding-right:1rem}"""
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


def page(document: Json) -> str:
    """The page as HTML."""
    by_tag: dict[str, list[str]] = {}
    for method, path, operation in operations(document):
        by_tag.setdefault(operation["tags"][0], []).append(_operation(method, path, operation))
    subjects = "".join(f"<h2>{escape(tag.capitalize())}</h2>{''.join(parts)}" for tag, parts in by_tag.items())
    about = "".join(f"<p>{escape(part)}</p>" for part in document["info"]["description"].split("\n\n"))
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>evenmatch API</title><style>{STYLE}</style><h1>evenmatch API</h1>{about}"
        '<p>Models and examples are in the <a href="/v1/openapi.json">OpenAPI document</a>.</p>'
        f"{subjects}</html>"
    )


def _operation(method: str, path: str, operation: Json) -> str:
    rows = "".join(_parameter(one) for one in operation.get("parameters", []))
    table = f"<table>{rows}</table>" if rows else ""
    bodies = [operation.get("requestBody", {}), *operation["responses"].values()]
    models = dict.fromkeys(name for part in bodies if (name := _model(part)))
    named = f"<p>Models: {', '.join(f'<code>{escape(name)}</code>' for name in models)}</p>" if models else ""
    answers = ", ".join(operation["responses"])
    description = operation.get("description", "")
    return (
        f"<details><summary><code>{method} {escape(path)}</code> {escape(operation['summary'])}</summary>"
        f"<p>{escape(description)}</p>{table}{named}<p>Answers: {escape(answers)}</p></details>"
    )


def _parameter(parameter: Json) -> str:
    name, meaning = escape(parameter["name"]), escape(parameter.get("description", ""))
    return f"<tr><th><code>{name}</code></th><td>{escape(parameter['in'])}</td><td>{meaning}</td></tr>"


def _model(part: dict[str, Any]) -> str:
    """The name of the model of a JSON body; empty: none."""
    schema: dict[str, str] = part.get("content", {}).get("application/json", {}).get("schema", {})
    return schema.get("$ref", "").rpartition("/")[2]
