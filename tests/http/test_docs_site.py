"""The documentation site at /docs, if the setting EVENMATCH_DOCS names its folder."""

import pytest

from evenmatch.errors import UsageError
from evenmatch.http.options import Options, read_options


@pytest.fixture
def folder(tmp_path):
    """A site of two pages and a script, beside a file that does not belong to it."""
    made = tmp_path / "site"
    (made / "how-to").mkdir(parents=True)
    (made / "index.html").write_text("<h1>Overview</h1>")
    (made / "how-to" / "index.html").write_text("<h1>How to</h1>")
    (made / "search.js").write_text("let found = 1")
    (tmp_path / "secret.txt").write_text("secret")
    return made


class TestWithAFolder:
    @pytest.fixture
    def options(self, folder):
        return Options(matchmaker=False, open_rate=1000, open_burst=1000, docs=str(folder))

    @pytest.mark.parametrize(
        ("path", "kind", "text"),
        [
            ("/docs/", "text/html; charset=utf-8", "<h1>Overview</h1>"),
            ("/docs/how-to/", "text/html; charset=utf-8", "<h1>How to</h1>"),
            ("/docs/search.js", "text/javascript; charset=utf-8", "let found = 1"),
        ],
    )
    def test_a_file_is_served_under_a_policy_that_forbids_inline_scripts_and_other_hosts(
        self, asking, path, kind, text
    ):
        answer = asking.get(path)
        assert (answer.status_code, answer.headers["content-type"], answer.text) == (200, kind, text)
        policy = dict(part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; "))
        assert (policy["default-src"], policy["script-src"], policy["worker-src"]) == ("'none'", "'self'", "'self'")
        assert answer.headers["x-content-type-options"] == "nosniff"

    @pytest.mark.parametrize(
        "path", ["/docs/gone", "/docs/how-to/gone.html", "/docs/..%2Fsecret.txt", "/docs/%2e%2e/secret.txt"]
    )
    def test_any_other_path_is_not_found(self, asking, path):
        answer = asking.get(path)
        assert answer.status_code == 404
        assert answer.headers["content-type"] == "application/problem+json"

    @pytest.mark.parametrize(
        ("path", "target"), [("/docs", "/docs/"), ("/docs/how-to", "http://localhost/docs/how-to/")]
    )
    def test_a_folder_without_its_slash_is_redirected(self, asking, path, target):
        answer = asking.get(path)
        assert (answer.status_code, answer.headers["location"]) == (307, target)

    @pytest.mark.parametrize("path", ["/docs", "/docs/"])
    def test_a_foreign_host_name_is_refused(self, asking, path):
        assert asking.get(path, headers={"Host": "evil.example"}).status_code == 421

    def test_an_unchanged_file_is_not_sent_again(self, asking):
        first = asking.get("/docs/search.js")
        again = asking.get("/docs/search.js", headers={"If-None-Match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")

    def test_nothing_can_be_written(self, asking):
        assert asking.post("/docs/", content=b"x").status_code == 405


def test_without_a_folder_the_address_leads_to_the_reference_of_the_api(asking):
    answer = asking.get("/docs")
    assert (answer.status_code, answer.headers["location"]) == (307, "/v1/docs")
    assert "evenmatch API" in asking.get("/v1/docs").text
    assert asking.get("/docs/").status_code == 404


def test_a_folder_without_a_site_is_refused_at_the_start(tmp_path):
    with pytest.raises(UsageError, match=r"--docs is .*: Value error, expected a folder with an index.html"):
        read_options({"docs": str(tmp_path)})
