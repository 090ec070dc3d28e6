"""The client against the OpenAPI document: every operation, every parameter, every answer."""

import ast
import importlib
import inspect
import pkgutil
import subprocess
import sys
import typing
from pathlib import Path
from urllib.parse import quote

import pytest
from pydantic import BaseModel

import evenmatch.client
import evenmatch.http.models
from evenmatch.client import AsyncClient, Client, models
from evenmatch.client.streams import events_of
from evenmatch.http.app import endpoints
from evenmatch.http.options import Options
from evenmatch.http.server import site_over
from evenmatch.operations.service import Service

PLAIN = {"health", "ready", "metrics"}  # whose document names no model, or that have no /v1
OWN = {"all", "close", "from_env", "run", "wait_for_job", "wait_for_match", "watch_ticket"}  # beside the operations
PACKAGE = Path(evenmatch.client.__file__).parent


@pytest.fixture(scope="module")
def document(tmp_path_factory):
    with Service.open(str(tmp_path_factory.mktemp("document") / "evenmatch.db")) as service:
        site = site_over(service, Options(matchmaker=False))
        made = endpoints(site).openapi()
        site.threads.shutdown()
    return made


@pytest.fixture(scope="module")
def operations(document):
    """Of each operation by its id: the method, the address, the rest without headers."""
    return {
        one["operationId"]: (method.upper(), path, one | {"parameters": without_headers(one.get("parameters", ()))})
        for path, methods in document["paths"].items()
        for method, one in methods.items()
    }


def without_headers(parameters):
    """A method sends the header Idempotency-Key by itself."""
    return [one for one in parameters if one["in"] != "header"]


def describing_method(name):
    """The function that describes an operation."""
    return getattr(Client, name).__wrapped__


def named(schema):
    return schema["$ref"].rpartition("/")[2] if "$ref" in schema else None


def body_of(operation):
    content = operation.get("requestBody", {}).get("content", {})
    return named(content["application/json"]["schema"]) if content else None


def parameters_of(name):
    """Those of a method but for `self`, in two groups: those that are models, and the others."""
    hints = typing.get_type_hints(describing_method(name))
    own = {one: hints[one] for one in list(inspect.signature(describing_method(name)).parameters)[1:]}
    bodies = {one for one, kind in own.items() if isinstance(kind, type) and issubclass(kind, BaseModel)}
    return bodies, set(own) - bodies


def value_for(parameter):
    """Something that an address can hold, of the type that a parameter has."""
    kinds = [parameter["schema"], *parameter["schema"].get("anyOf", ())]
    types = {one.get("type") for one in kinds}
    if "array" in types:
        return ["one two", "three&four"]
    if types & {"integer", "number"}:
        return 7
    return True if "boolean" in types else f"{parameter['name']} / ü"


def test_both_clients_have_a_method_for_every_operation_and_nothing_else(operations):
    for kind in (Client, AsyncClient):
        methods = {name for name in dir(kind) if not name.startswith("_")}
        assert methods - OWN == set(operations)


def test_every_parameter_of_an_operation_is_one_of_its_method(operations):
    for name in set(operations) - {"ticket_events"}:
        _, _, operation = operations[name]
        bodies, others = parameters_of(name)
        assert others == {one["name"] for one in operation.get("parameters", ())}, name
        assert len(bodies) == (body_of(operation) is not None), name


def test_what_may_be_left_out_may_be_left_out_and_stands_for_the_same(operations):
    for name in set(operations) - {"ticket_events"}:
        own = inspect.signature(describing_method(name)).parameters
        for one in operations[name][2].get("parameters", ()):
            default = one["schema"].get("default", inspect.Parameter.empty if one["required"] else None)
            assert own[one["name"]].default == default, (name, one["name"])


def test_every_method_takes_and_returns_the_models_of_the_document(operations):
    for name in set(operations) - PLAIN - {"ticket_events"}:
        _, _, operation = operations[name]
        hints = typing.get_type_hints(describing_method(name))
        (answer,) = typing.get_args(hints["return"])
        good = {status: one for status, one in operation["responses"].items() if status.startswith("2")}
        told = good.pop(min(good))
        assert list(good) in ([], ["202"]), name  # 202: a job whose result is this answer
        schema = told["content"]["application/json"]["schema"] if "content" in told else {}
        assert answer.__name__ == (named(schema) or "NoneType"), name
        for body in parameters_of(name)[0]:
            assert hints[body].__name__ == body_of(operation), name


def test_every_method_asks_by_the_method_and_address_of_the_document(operations, document):
    for name in set(operations) - {"ticket_events"}:
        method, path, operation = operations[name]
        given = {one["name"]: value_for(one) for one in operation.get("parameters", ())}
        body = {}
        for one in parameters_of(name)[0]:
            kind = typing.get_type_hints(describing_method(name))[one]
            examples = document["components"]["schemas"][kind.__name__].get("examples", [{}])
            body[one] = kind.model_validate(examples[0])
        call = describing_method(name)(None, **given, **body)
        places = {one["name"]: quote(str(given[one["name"]]), safe="") for one in operation.get("parameters", ())}
        assert (call.method, call.path) == (method, path.format(**places)), name
        asked = {one["name"] for one in operation.get("parameters", ()) if one["in"] == "query"}
        assert set(call.parameters) == asked, name
        assert (call.body is None) == (not body), name


def test_the_stream_of_a_ticket_is_at_the_address_of_the_document(operations):
    _, path, _ = operations["ticket_events"]
    assert events_of("arena", 7).path == path.format(ladder="arena", ticket=7)


# Writes that are recognized by an id of their own or that can be repeated as often as one likes
HARMLESS = {"report_match", "report_matches", "close_match", "accept_offer", "heartbeat", "issue_token"}
HARMLESS |= {"decay_ratings", "get_odds", "preview_rules", "announce_match"}
WITH_ID = {
    "join_queue": "request_id",
    **dict.fromkeys(("void_match", "ban_player", "open_season", "start_ratings"), "id"),
}


def test_a_write_that_has_no_id_of_its_own_gets_one_for_each_call(operations, document):
    for name, (method, _, operation) in operations.items():
        if name == "ticket_events":
            continue
        given = {one["name"]: value_for(one) for one in operation["parameters"] if one["name"] != "preview"}
        for one in parameters_of(name)[0]:
            kind = typing.get_type_hints(describing_method(name))[one]
            example = document["components"]["schemas"][kind.__name__].get("examples", [{}])[0]
            given[one] = kind.model_validate({field: example[field] for field in example if field != WITH_ID.get(name)})
        keys = {describing_method(name)(None, **given).idempotency_key for _ in range(2)}
        if method == "GET" or name in HARMLESS:
            assert keys == {None}, name
        else:
            assert [len(key) for key in keys] == [32, 32], name
        if name in WITH_ID:
            (body,) = parameters_of(name)[0]
            given[body] = given[body].model_copy(update={WITH_ID[name]: "mine"})
            assert describing_method(name)(None, **given).idempotency_key is None, name


def test_all_models_of_the_service_are_in_one_place():
    there = set()
    for one in pkgutil.iter_modules(evenmatch.http.models.__path__):
        module = importlib.import_module(f"evenmatch.http.models.{one.name}")
        there |= {
            name for name, thing in vars(module).items() if isinstance(thing, type) and issubclass(thing, BaseModel)
        }
    assert set(models.__all__) == there - {
        "BaseModel",
        "RequestModel",
        "ResponseModel",
        "OptionsRequest",
        "OptionsResponse",
    }


def test_the_signature_that_people_see_names_the_answer():
    shown = str(inspect.signature(Client.get_standings))
    assert shown.endswith("-> 'StandingsPage'")
    assert "season: 'int | None' = None" in shown
    assert inspect.signature(AsyncClient.get_standings) == inspect.signature(Client.get_standings)


@pytest.mark.parametrize("file", sorted(PACKAGE.rglob("*.py")), ids=lambda file: str(file.relative_to(PACKAGE)))
def test_the_client_knows_nothing_of_the_service_but_errors_and_models(file):
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("evenmatch"):
            assert node.module.startswith(("evenmatch.client", "evenmatch.errors", "evenmatch.http.models")), (
                node.module
            )


def test_the_client_needs_httpx_and_pydantic_alone():
    heavy = ("starlette", "fastapi", "uvicorn", "sqlalchemy", "numpy", "numba", "structlog", "jwt")
    program = f"import sys, evenmatch.client; print([name for name in {heavy!r} if name in sys.modules])"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert told.stdout.strip() == "[]"
