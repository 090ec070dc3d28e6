"""The pages of a ladder as files, for communities without a server: standings, players, matches, seasons and rules.

The site renders them in this process for a visitor without a key, so they show what the ladder shows to everybody. Then
`_FilePage` makes them work without a server: links become relative, and forms, scripts and links to pages that are
not among the files disappear.
"""

from __future__ import annotations

import asyncio
import hashlib
import posixpath
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from html import escape
from html.parser import HTMLParser
from pathlib import Path, PurePath
from urllib.parse import parse_qsl, urlencode

import numpy as np
from starlette.types import ASGIApp, Message, Scope

from evenmatch.accounts.access import ANYONE
from evenmatch.errors import StoreError, UsageError
from evenmatch.http.cursors import FIRST_PAGE, write_cursor
from evenmatch.http.options import Options, read_options
from evenmatch.http.request_context import RequestContext
from evenmatch.http.server import site_over
from evenmatch.ladders.ladder_queries import LadderQueries
from evenmatch.operations.service import Service
from evenmatch.players.matches import ListKey
from evenmatch.times import iso_time
from evenmatch.web.app import pages
from evenmatch.web.page_request import LOGO, address, asset, logo
from evenmatch.web.pages.matches import SIZE as MATCHES_OF_PAGE
from evenmatch.web.pages.standings import SIZE as PLAYERS_OF_PAGE

FIRST = "index.html"
OWN = re.compile(r"(?:players|matches)/(?:[a-z0-9-]+-)?[0-9a-f]{16}\.html|(?:standings|matches|season)-[\d-]+\.html")
POLICY = "<meta http-equiv=\"Content-Security-Policy\" content=\"script-src 'none'; form-action 'none'\">"
SYMBOL = re.compile(rb'<symbol id="(\w+)".*?</symbol>')
PRINTED = ("href", "src")  # attributes with addresses
NO_LIMIT = 1e9  # requests a second


def write_pages(
    service: Service, ladder: str, folder: Path, as_of: int, limit: int, progress: Callable[[int], None]
) -> int:
    """Write the pages of a ladder into a folder, which is created, and return the number of files.

    as_of     when the standings are taken, in microseconds; equal ladders and times give equal files
    limit     most players, and most matches, with pages of their own: the best and the latest
    progress  called with the number of pages rendered
    All pages are rendered before the first file is replaced, each at once, `index.html` last. Then the pages that an
    earlier call wrote and this one did not are removed; other files of the folder stay. Raises UsageError if the folder
    cannot be written, StoreError if the ladder changed in between.
    """
    given = {"open_reads": True, "guests": False, "matchmaker": False, "open_rate": NO_LIMIT, "open_burst": 10**9}
    options, then = read_options(given), Service(service.database, lambda: as_of)
    files = _files(LadderQueries(then, then.shown_view).seen_by(ANYONE), ladder, limit)
    try:
        folder.mkdir(exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".evenmatch-", dir=folder) as drafts:
            written: dict[str, Path] = {}

            def keep(file: str, body: bytes) -> None:
                written[file] = Path(drafts) / file
                written[file].parent.mkdir(exist_ok=True)
                written[file].write_bytes(body)

            for file, body in _assets(options):
                keep(file, body)
            asyncio.run(_render(then, options, files, as_of, keep, progress))
            _replace(folder, written)
    except OSError as error:
        raise UsageError(f"{folder}: cannot be written: {error.strerror}") from error
    return len(written)


def _replace(folder: Path, written: Mapping[str, Path]) -> None:
    for file in sorted(written, key=lambda name: (name == FIRST, name)):
        (folder / file).parent.mkdir(exist_ok=True)
        written[file].replace(folder / file)
    for path in [*folder.glob("*.html"), *folder.glob("players/*.html"), *folder.glob("matches/*.html")]:
        file = path.relative_to(folder).as_posix()
        if file not in written and OWN.fullmatch(file):
            path.unlink()


def _files(reading: LadderQueries, ladder: str, limit: int) -> dict[str, str]:
    """Return the file of each address that gets one."""
    here, snapshot = ("ladders", ladder), reading.view(ladder).snapshot
    files = {"/": FIRST, address(*here, "standings"): FIRST}
    listed, board = snapshot.order[:limit], snapshot.board
    for page in range(1, -(-len(listed) // PLAYERS_OF_PAGE) + 1):
        files[address(*here, "standings", page=page)] = FIRST if page == 1 else f"standings-{page}.html"
    others = np.setdiff1d(np.arange(len(board)), snapshot.order)[: limit - len(listed)]
    chosen = snapshot.among(board.player[np.concatenate([listed, others])])
    for name, _ in reading.service.named(chosen):
        files[address(*here, "players", name)] = _file_of("players", name)
    further: ListKey | None = FIRST_PAGE
    page = 1
    while further is not None and (page - 1) * MATCHES_OF_PAGE < limit:
        query = {} if page == 1 else {"before": write_cursor(*further)}
        files[address(*here, "matches", **query)] = "matches.html" if page == 1 else f"matches-{page}.html"
        _, matches, further = reading.matches(ladder, before=further, limit=MATCHES_OF_PAGE)
        for match in matches[: limit - (page - 1) * MATCHES_OF_PAGE]:
            files[address(*here, "matches", match.match_id)] = _file_of("matches", match.match_id)
        page += 1
    for season in (one.number for one in reading.service.seasons(ladder) if one.closed_at is not None):
        files[address(*here, "seasons", season)] = f"season-{season}.html"
        page = 2
        while page * PLAYERS_OF_PAGE <= limit and reading.finals(ladder, season, (page - 1) * PLAYERS_OF_PAGE, 1)[1]:
            files[address(*here, "seasons", season, page=page)] = f"season-{season}-{page}.html"
            page += 1
    return files | {address(*here, page): f"{page}.html" for page in ("distribution", "seasons", "rules")}


def _file_of(folder: str, name: str) -> str:
    """Return a file name that any file system takes, different for names that differ in anything."""
    readable = re.sub("[^a-z0-9]+", "-", name.lower()[:40]).strip("-")
    digest = hashlib.blake2b(name.encode(), digest_size=8).hexdigest()
    return f"{folder}/{readable}-{digest}.html" if readable else f"{folder}/{digest}.html"


def _assets(options: Options) -> Iterator[tuple[str, bytes]]:
    yield "assets/evenmatch.css", asset("evenmatch.css").body
    yield "assets/icon.svg", asset("icon.svg").body
    if options.logo:
        yield _asset_file(LOGO, options), logo(options.logo).body


def _asset_file(name: str, options: Options) -> str:
    return f"assets/{name}{PurePath(options.logo).suffix.lower() if name == LOGO else ''}"


async def _render(
    service: Service,
    options: Options,
    files: dict[str, str],
    as_of: int,
    keep: Callable[[str, bytes], None],
    progress: Callable[[int], None],
) -> None:
    """Call `keep` with the file and content of each page, as the site shows it to a visitor without a key."""
    site = site_over(service, options)
    shown, kept = pages(site), set[str]()
    try:
        for url, file in reversed(files.items()):  # of several addresses of a file the last, which is a page
            if file not in kept:
                keep(file, _FilePage(files, file, options, as_of).of(await _asked(shown, url)).encode())
                kept.add(file)
                progress(len(kept))
    finally:
        site.close()


async def _asked(app: ASGIApp, url: str) -> str:
    """Ask for a page. Raises StoreError if it is not there."""
    path, _, query = url.partition("?")
    scope: Scope = {
        **{"type": "http", "method": "GET", "scheme": "http", "http_version": "1.1", "root_path": ""},
        **{"path": path, "raw_path": path.encode(), "query_string": query.encode()},
        **{"headers": [(b"host", b"localhost")], "client": ("127.0.0.1", 0), "server": ("localhost", 80)},
        "evenmatch.asked": RequestContext("page file"),
    }
    status, body = 0, b""

    async def receive() -> Message:
        return {"type": "http.request"}

    async def send(message: Message) -> None:
        nonlocal status, body
        status = message.get("status", status)
        body += message.get("body", b"")

    await app(scope, receive, send)
    if status != 200:
        raise StoreError(f"{url}: status {status}; the ladder may have changed, try again")
    return body.decode()


class _FilePage(HTMLParser):
    """Turns a page of the site into a page that works as a file; other text and markup stay as they are.

    Elements with the attribute `data-served` need a server and are left out. Symbols are copied into the page, since
    browsers load none from other files.
    """

    def __init__(self, files: Mapping[str, str], here: str, options: Options, as_of: int) -> None:
        super().__init__(convert_charrefs=False)
        self._files, self._here, self._options, self._as_of = files, here, options, as_of
        self._out: list[str] = []
        self._symbols: set[str] = set()
        self._dropped, self._depth = "", 0  # the element that is left out, and how deep in elements of this name
        self._navs = 0
        self._date = ""  # of the `time` element that would show how long ago it was
        self._is_unlinked = False

    def of(self, text: str) -> str:
        """Return the page as it is written into the file."""
        self.feed(text)
        self.close()
        found = {match[1].decode(): match[0].decode() for match in SYMBOL.finditer(asset("crests.svg").body)}
        symbols = "".join(found[name] for name in sorted(self._symbols))
        page = "".join(self._out).replace("<body>", f'<body>\n<svg style="display:none">{symbols}</svg>', 1)
        return re.sub(r"<li>\s*</li>\n?", "", page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Write a start tag, or begin to leave its element out."""
        given = {name: value or "" for name, value in attrs}
        if self._dropped:
            self._depth += tag == self._dropped
            return
        links = {name: self._link(given[name]) for name in PRINTED if name in given and tag != "use"}
        is_lost = tag == "a" and links.get("href") is None
        is_part = self._navs > 0 or "button" in given.get("class", "").split()
        if tag in ("script", "form") or "data-served" in given or (is_lost and is_part):
            self._dropped, self._depth = tag, 1
        elif tag == "meta" and given.get("property", given.get("name", "")).startswith(("og:", "twitter:")):
            pass
        elif is_lost:
            self._is_unlinked = True
        else:
            self._navs += tag == "nav"
            self._date = given.get("datetime", "")[:10] if "data-ago" in given else ""
            self._write_tag(tag, links)

    def _write_tag(self, tag: str, links: Mapping[str, str | None]) -> None:
        text = "<body>" if tag == "body" else (self.get_starttag_text() or "").replace(" data-ago", "")
        for name, link in links.items():
            written = f' {name}="{escape(link or "")}"'
            text = re.sub(rf' {name}="[^"]*"', written.replace("\\", r"\\"), text, count=1)
        self._out.append(f"{text}\n{POLICY}" if tag == "head" else text)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Write an element without content; a symbol of another file becomes one of this page."""
        if self._dropped:
            return
        href = dict(attrs).get("href") or ""
        if tag == "use":
            self._symbols.add(href.rpartition("#")[2])
            self._out.append(f'<use href="#{escape(href.rpartition("#")[2])}"/>')
        else:
            self._out.append(self.get_starttag_text() or "")

    def handle_endtag(self, tag: str) -> None:
        """Write an end tag, unless its start tag was left out."""
        if self._dropped:
            self._depth -= tag == self._dropped
            if not self._depth:
                self._dropped = ""
        elif tag == "a" and self._is_unlinked:
            self._is_unlinked = False
        else:
            self._navs -= tag == "nav"
            self._date = ""
            if tag == "footer":
                self._out.append(f'<div class="wrap">As of {iso_time(self._as_of)[:16].replace("T", " ")} UTC.</div>')
            self._out.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        """Write text; the date where the site says how long ago it was."""
        self._add(self._date or data)

    def handle_entityref(self, name: str) -> None:
        """Write a reference such as `&amp;` as it is."""
        self._add(f"&{name};")

    def handle_charref(self, name: str) -> None:
        """Write a reference such as `&#39;` as it is."""
        self._add(f"&#{name};")

    def handle_decl(self, decl: str) -> None:
        """Write the document type."""
        self._add(f"<!{decl}>")

    def _add(self, text: str) -> None:
        if not self._dropped:
            self._out.append(text)

    def _link(self, url: str) -> str | None:
        """Return where a link leads from this page; None: to nothing among the files."""
        if url.startswith(("#", "http://", "https://", "mailto:")):
            return url
        path, _, query = url.partition("#")[0].partition("?")
        kept = urlencode([(name, value) for name, value in parse_qsl(query) if name != "player"])
        file = self._files.get(f"{path}?{kept}" if kept else path)
        if path.startswith("/assets/"):
            file = _asset_file(path.rpartition("/")[2], self._options)
        if file is None:
            return None
        fragment = f"#{url.partition('#')[2]}" if "#" in url else ""
        return posixpath.relpath(file, posixpath.dirname(self._here) or ".") + fragment
