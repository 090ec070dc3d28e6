"""What an operator is given fits together: dashboard, alerts, composition, load balancer, and the service."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import httpx
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

import proxies
from evenmatch.accounts.access import SCOPES
from evenmatch.accounts.keys import Keys
from evenmatch.http.options import Options
from evenmatch.http.server import workers
from evenmatch.ledger.secrets import FILE_VARIABLE, VARIABLE

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
COMPOSE = yaml.safe_load((ROOT / "compose.yaml").read_text())
IMAGE = (ROOT / "Containerfile").read_text()
NGINX = (DEPLOY / "nginx.conf").read_text()
OF_PROMETHEUS = {"up"}
NAME = re.compile(r"\b((?:evenmatch|process|up)\w*)\b(?=\s*[{\[)]|\s*$|\s*==)", re.M)
SELECTED = re.compile(r"\b(evenmatch_\w+)\{([^}]*)\}")
GROUPED = re.compile(r"\b(?:by|on) \(([^)]*)\)")
OF_SCRAPES = {"job", "instance", "le"}  # added by Prometheus, or of every histogram


def alert_rules():
    groups = yaml.safe_load((DEPLOY / "alerts.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def panels():
    return json.loads((DEPLOY / "grafana.json").read_text())["panels"]


def expressions():
    board = [target["expr"] for panel in panels() for target in panel["targets"]]
    return [*board, *(rule["expr"] for rule in alert_rules())]


@pytest.fixture
def options():
    return Options(matchmaker=True)


@pytest.fixture
def metric_labels(site, asking):
    """What /metrics of a process says it has: labels by the name of each sample."""
    workers(site)
    key = Keys(site.service.database, site.service.clock).create("prometheus", ["read"], None, None)[1]
    answer = asking.get("/metrics", headers={"Authorization": f"Bearer {key}"})
    assert answer.status_code == 200
    names = set()
    for family in text_string_to_metric_families(answer.text):
        ends = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}.get(family.type, [""])
        names |= {family.name + end for end in ends}
    return names


def test_every_metric_of_dashboard_and_alerts_is_one_that_a_process_tells(metric_labels):
    named = {name for expr in expressions() for name in NAME.findall(expr)}
    assert {"evenmatch_requests_total", "process_resident_memory_bytes", "evenmatch_queue_tickets"} <= named
    assert named - OF_PROMETHEUS - metric_labels == set()


def test_every_label_of_dashboard_and_alerts_is_one_that_some_figure_has(site, metric_labels):
    known = set(OF_SCRAPES)
    registries = site.metrics.registry, site.metrics.of_service
    for collector in (each for registry in registries for each in registry._collector_to_names):
        known |= set(getattr(collector, "_labelnames", ()))
        for family in collector.describe() if hasattr(collector, "describe") else ():
            known |= set(getattr(family, "_labelnames", ()))
    for expr in expressions():
        used = {label.split("=")[0].strip("!~ ") for _, labels in SELECTED.findall(expr) for label in labels.split(",")}
        used |= {label.strip() for group in GROUPED.findall(expr) for label in group.split(",")}
        assert used - known == set(), expr


def test_panels_have_titles_units_and_places_of_their_own():
    placed = [(one["gridPos"]["x"], one["gridPos"]["y"]) for one in panels()]
    assert len(set(placed)) == len(placed) == len({one["title"] for one in panels()})
    assert all(one["fieldConfig"]["defaults"]["unit"] for one in panels())


def test_every_alert_says_why_and_is_explained():
    page = (ROOT / "docs" / "operate.md").read_text()
    for rule in alert_rules():
        assert rule["annotations"]["summary"]
        assert rule["annotations"]["reason"]
        assert f"`{rule['alert']}`" in page


def test_every_variable_of_image_and_composition_is_a_setting():
    known = {f"EVENMATCH_{name.upper()}" for name in Options.model_fields} | {"EVENMATCH_DB", VARIABLE}
    told = set(re.findall(r"EVENMATCH_\w+", IMAGE))
    for service in ("api1", "api2"):
        told |= {name for name in COMPOSE["services"][service]["environment"] if name.startswith("EVENMATCH_")}
    assert told - known == set()


def test_no_process_starts_without_a_master_secret_and_all_have_the_same():
    given = {COMPOSE["services"][name]["environment"][VARIABLE] for name in ("api1", "api2")}
    assert len(given) == 1
    assert given.pop().startswith("${EVENMATCH_SECRET:?")
    assert "EVENMATCH_SECRET" not in IMAGE


def test_nothing_starts_without_a_password_and_none_is_written_down():
    text = (ROOT / "compose.yaml").read_text()
    given = re.findall(r"(?:PGPASSWORD|POSTGRES_PASSWORD): (.*)", text)
    assert len(given) == 2
    assert all(one.startswith("${EVENMATCH_DB_PASSWORD:?") for one in given)
    assert "PASSWORD" not in IMAGE


def test_a_process_has_longer_to_stop_than_it_takes():
    for name in ("api1", "api2"):
        service = COMPOSE["services"][name]
        assert int(service["stop_grace_period"].removesuffix("s")) > int(
            service["environment"]["EVENMATCH_STOP_WITHIN"]
        )


def test_only_the_load_balancer_can_be_reached():
    assert [name for name, service in COMPOSE["services"].items() if "ports" in service] == ["balancer"]
    assert COMPOSE["services"]["database"]["networks"] == ["data"]
    assert COMPOSE["networks"]["data"]["internal"] is True


def test_load_balancer_and_prometheus_know_the_processes_by_the_names_of_the_composition():
    apis = {f"{name}:8080" for name in COMPOSE["services"] if name.startswith("api")}
    assert set(re.findall(r"^server (\S+:\d+) ", (DEPLOY / "upstream-compose.conf").read_text(), re.M)) == apis
    (job,) = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())["scrape_configs"]
    assert set(job["static_configs"][0]["targets"]) == apis


@pytest.mark.skipif(proxies.NGINX is None, reason="nginx is not installed")
@pytest.mark.parametrize("tls", [False, True], ids=["as it is", "with TLS"])
def test_nginx_accepts_the_configuration_of_the_load_balancer(tmp_path, tls):
    """By itself, as an administrator tries it; and with the lines of docs/operate.md for TLS."""
    shutil.copytree(DEPLOY, tmp_path / "deploy")
    file = tmp_path / "deploy" / "nginx.conf"
    if tls:
        (lines,) = re.findall(r"```nginx\n(.*?)```", (ROOT / "docs" / "operate.md").read_text(), re.S)
        made = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=ranks.example", "-days", "1")
        key, certificate = tmp_path / "key.pem", tmp_path / "certificate.pem"
        subprocess.run([*made, "-keyout", key, "-out", certificate], check=True, capture_output=True)
        lines = re.sub(r"(ssl_certificate_key +)\S+;", rf"\1{key};", lines)
        lines = re.sub(r"(ssl_certificate +)\S+;", rf"\1{certificate};", lines)
        file.write_text(re.sub(r"listen 8080 [^\n]*", lambda _: lines, file.read_text()))
    main = tmp_path / "deploy" / "nginx-main.conf"
    told = subprocess.run([proxies.NGINX, "-t", "-c", main], capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr


@pytest.mark.skipif(proxies.CADDY is None, reason="caddy is not installed")
def test_caddy_accepts_its_configuration():
    command = [proxies.CADDY, "validate", "--config", DEPLOY / "Caddyfile", "--adapter", "caddyfile"]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    assert told.returncode == 0, told.stderr


@pytest.fixture(scope="module")
def balancer(tmp_path_factory):
    """nginx with this configuration, before a process that is not there: its URL."""
    with proxies.nginx(tmp_path_factory.mktemp("balancer"), "127.0.0.1:1") as url:
        yield url


@pytest.mark.skipif(proxies.NGINX is None, reason="nginx is not installed")
@pytest.mark.parametrize(
    ("headers", "size", "status"),
    [
        ({}, 100, 502),  # to the processes, which are not there
        ({}, 200_000, 401),
        ({}, None, 401),
        ({"Authorization": "Bearer em_x"}, 200_000, 502),
        ({"Authorization": "Bearer em_x"}, 10_000_000, 413),
        ({"X-Many": "a" * 20_000}, 100, 400),
    ],
)
def test_the_load_balancer_refuses_what_strangers_could_fill_it_with(balancer, headers, size, status):
    body = iter([b"x" * 1000]) if size is None else b"x" * size
    answer = httpx.post(f"{balancer}/v1/ladders/duel/matches", content=body, headers=headers)
    assert answer.status_code == status
    if status != 400:
        assert answer.headers["content-type"] == "application/problem+json"
        assert answer.json()["status"] == status


def test_the_load_balancer_lets_larger_bodies_through_than_the_service():
    (most,) = re.findall(r"client_max_body_size (\d+)m;", NGINX)
    assert int(most) * 2**20 > Options().body_limit


def test_the_page_for_operators_names_every_setting_and_scope():
    page = (ROOT / "docs" / "reference" / "settings.md").read_text()
    names = [*(f"EVENMATCH_{name.upper()}" for name in Options.model_fields), VARIABLE, FILE_VARIABLE]
    assert [name for name in names if f"`{name}`" not in page] == []
    told = (ROOT / "docs" / "operate.md").read_text()
    assert [scope for scope in SCOPES if f"`{scope}`" not in told] == []
