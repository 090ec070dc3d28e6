"""The service does what its OpenAPI document says: schemathesis asks all that it allows, and what it does not."""

import os

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from evenmatch.http.app import application
from evenmatch.http.models.reports import MatchReport
from evenmatch.http.options import Options
from evenmatch.http.server import site_over
from evenmatch.ledger.database import Database
from evenmatch.operations.service import Service
from evenmatch.options import Number, options_of
from evenmatch.policy import Policy
from evenmatch.webhooks.subscriptions import EVENTS

pytestmark = pytest.mark.slow

SOAK = os.environ.get("EVENMATCH_SOAK") == "1"
CHECKS = [not_a_server_error, status_code_conformance, content_type_conformance, response_schema_conformance]
THERE = {"ladder": "duel", "player": "ann", "match_id": "m-1", "queue": "main", "ticket": 1}
ENDLESS = {"ticket_events"}  # a stream that goes on while its ticket waits


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """The document, and the headers of a key that may do everything; some of what it tells of is there."""
    path = str(tmp_path_factory.mktemp("openapi") / "evenmatch.db")
    Database.open(path).close()
    with Service.open(path) as service:
        site = site_over(service, Options(matchmaker=False, rate=1e6, burst=1_000_000))
        site.kernels.load()
        headers = {"Authorization": f"Bearer {site.keys.create('all', ['admin'], None, None)[1]}"}
        schema = schemathesis.openapi.from_asgi("/v1/openapi.json", application(site))
        for method, address, body in (
            ("POST", "/v1/ladders", {"name": "duel", "system": "elo", "settings": {"placement": 0}}),
            ("POST", "/v1/ladders/duel/matches", MatchReport.EXAMPLE),
            ("PUT", "/v1/ladders/duel/queues/main", {"policy": {"team_size": 1}}),
            ("POST", "/v1/ladders/duel/tickets", {"members": [{"player": "zoe"}], "queues": ["main"]}),
        ):
            template = address.replace("/duel", "/{ladder}").replace("/main", "/{queue}")
            case = schema[template][method].Case(path_parameters=THERE, body=body, media_type="application/json")
            assert case.call(headers=headers).status_code in (200, 201)
        yield schema, headers
        site.jobs.stop(60)
        for ladder in service.ladders():
            service.rebuild(ladder.name)
            assert service.verify(ladder.name).is_equal
        site.threads.shutdown(wait=True)


def ask_all(asked, mode, examples, **given_parts):
    """Ask every endpoint so many things; whatever is wrong, of all of them."""
    schema, headers = asked
    wrong, count = [], 0

    def checked(operation):
        @settings(
            max_examples=examples,
            derandomize=True,
            database=None,
            deadline=None,
            phases=[Phase.generate, Phase.shrink] if SOAK else [Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(generation_mode=mode, **given_parts))
        def check(case):
            nonlocal count
            count += 1
            if case.query and isinstance(case.query.get("wait"), int | float):
                case.query["wait"] = min(case.query["wait"], 0.01)  # what is waited for never comes
            case.validate_response(case.call(headers=headers), checks=CHECKS)

        return check

    for found in schema.get_all_operations():
        operation = found.ok()
        if operation.definition.raw["operationId"] in ENDLESS:
            continue
        try:
            checked(operation)()
        except Unsatisfiable:  # there is nothing wrong that could be sent
            continue
        except (Exception, BaseExceptionGroup) as error:
            wrong.append(f"{operation.label}: {error} {getattr(error, 'exceptions', '')}")
    assert not wrong, "\n\n".join(wrong)
    return count


def test_its_own_examples_are_answered_as_the_document_says(asked):
    """Each example is sent to the ladder that is there, and each address is asked without anything beside."""
    schema, headers = asked
    models = schema.raw_schema["components"]["schemas"]
    good = set()
    for found in schema.get_all_operations():
        operation = found.ok()
        raw = operation.definition.raw
        if raw["operationId"] in ENDLESS:
            continue
        parts = {"path_parameters": {**THERE, "webhook": 1, "delivery": 1, "key": "em_x", "job": "job_x"}}
        if "requestBody" in raw:
            name = raw["requestBody"]["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
            parts |= {"body": models[name].get("examples", [{}])[0], "media_type": "application/json"}
        case = operation.Case(**parts)
        answer = case.call(headers=headers)
        case.validate_response(answer, checks=CHECKS)
        headers_named = raw["responses"].get(str(answer.status_code), {}).get("headers", {})
        assert [name for name in headers_named if name.lower() not in answer.headers] == [], raw["operationId"]
        assert ("etag" in answer.headers) == ("ETag" in headers_named), raw["operationId"]
        if answer.status_code < 300:
            good.add(raw["operationId"])
    assert good > {
        "report_match",
        "report_matches",
        "join_queue",
        "set_queue",
        "get_standings",
        "get_match",
        "void_match",
    }
    assert len(good) > 40, good


def test_an_operation_lists_the_errors_that_it_can_give(asked):
    listed = {
        found.ok().definition.raw["operationId"]: {
            int(status) for status in found.ok().definition.raw["responses"] if status >= "4"
        }
        for found in asked[0].get_all_operations()
    }
    assert listed["health"] == set()
    assert listed["list_systems"] == {401, 403, 429, 503}
    assert listed["get_ladder"] == {401, 403, 404, 429, 503}
    assert listed["ticket"] == {401, 403, 404, 422, 429, 503}
    assert listed["join_queue"] == {400, 401, 403, 404, 409, 413, 422, 429, 503}
    assert sum(map(len, listed.values())) < 7 * len(listed)  # nine each would be all


def test_no_field_of_a_request_has_a_default_that_generators_take_for_required(asked):
    schemas = asked[0].raw_schema["components"]["schemas"]
    sent = {"JoinRequest", "PartyMember", "MatchReport", "SettingsChange", "SetQueue", "Close", "TokenRequest"}
    assert sent < schemas.keys()
    with_default = {name for name in sent for field in schemas[name]["properties"].values() if "default" in field}
    assert with_default == set()
    assert schemas["TokenRequest"]["properties"]["expires_in"]["description"].endswith("Default: 3600.")
    assert {"next", "items"} <= set(schemas["LadderPage"]["required"])


def test_the_document_names_server_signature_events_and_problems(asked):
    made = asked[0].raw_schema
    assert made["servers"][0]["url"] == "/"
    assert made["components"]["securitySchemes"]["signature"]["name"] == "Authorization"
    stream = made["paths"]["/v1/ladders/{ladder}/tickets/{ticket}/events"]["get"]["responses"]["200"]["content"]
    assert stream["text/event-stream"]["schema"]["$ref"].endswith("/TicketEvent")
    problems = made["components"]["schemas"]["Problem"]["properties"]["type"]["enum"]
    assert {"urn:evenmatch:problem:not-yet", "urn:evenmatch:problem:unknown-name"} < set(problems)
    assert set(made["webhooks"]) == set(EVENTS)


def test_what_the_document_allows_is_answered_as_it_says(asked):
    assert ask_all(asked, GenerationMode.POSITIVE, 200 if SOAK else 5) > 250
    assert ask_all(asked, GenerationMode.POSITIVE, 200 if SOAK else 5, path_parameters=THERE) > 250


def test_what_the_document_forbids_is_refused_as_it_says(asked):
    assert ask_all(asked, GenerationMode.NEGATIVE, 200 if SOAK else 4) > 150
    assert ask_all(asked, GenerationMode.NEGATIVE, 200 if SOAK else 4, path_parameters=THERE) > 150


def test_the_options_of_a_policy_are_those_of_the_matchmaker(asked):
    """Their names, whether they are whole, optional or bounded, and what they do."""
    schemas = asked[0].raw_schema["components"]["schemas"]
    declared = options_of(Policy)
    for model, further in (("PolicyOptions", {"preset"}), ("QueuePolicy", set())):
        properties = schemas[model]["properties"]
        assert set(properties) == {*declared, *further}
        for name, option in declared.items():
            assert properties[name]["description"] == option.meaning
            if not isinstance(option, Number):
                continue
            kinds = properties[name].get("anyOf", [properties[name]])
            assert ({"type": "null"} in kinds) == option.optional, name
            number = kinds[0]
            assert number["type"] == ("integer" if option.whole else "number"), name
            assert (number["minimum"], number["maximum"]) == (option.low, option.high), name
    assert schemas["PolicyOptions"].get("required") is None
    assert schemas["PolicyOptions"]["additionalProperties"] is False


def test_an_option_that_is_none_is_named_with_the_one_that_was_meant(admin):
    admin.post("/v1/ladders", json={"name": "duel", "system": "elo"})
    put = "/v1/ladders/duel/queues/main"
    told = admin.put(put, json={"policy": {"team_sise": 2}})
    assert (told.status_code, told.json()["detail"].split(";")[0]) == (
        422,
        "unknown option of a policy 'team_sise' (did you mean 'team_size'?)",
    )
    made = admin.put(put, json={"policy": {"team_size": 2, "max_odds": None, "steps": [[0, 5], [30, 20]]}}).json()
    assert (made["policy"]["max_odds"], made["policy"]["steps"]) == (None, [[0.0, 5.0], [30.0, 20.0]])
    assert made["policy"]["team_size"] == 2
