"""The console's ways in, and what it refuses."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
import sys
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import psycopg
import pytest
from http_api import SETTINGS, Api, opened
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from test_console_browser import PICTURES, SHOWN
from waiting import until

from jobq_console import Options, Proxy, Site
from jobq_console.charts import latency, legend, time_line
from jobq_console.queues import sickness
from jobq_console.words import plain
from servers import ROOT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator


pytest_plugins = ["http_fixtures"]
EVIL = "<script>alert(1)</script>"


class Browser:
    """A browser without JavaScript: cookies, forms, and the origin of its pages."""

    def __init__(self, api: Api) -> None:
        self.api = api
        self.client = api.client
        del self.client.headers["authorization"]

    async def sign_in(self, scopes: list[str]) -> httpx.Response:
        key = self.api.key(scopes)["authorization"].removeprefix("Bearer ")
        return await self.post("/console/enter", key=key)

    async def get(self, path: str, **options: Any) -> httpx.Response:
        return await self.client.get(path, **options)

    async def post(self, path: str, origin: str = "http://jobq", **form: str) -> httpx.Response:
        return await self.client.post(path, data=form, headers={"origin": origin})

    async def token(self) -> str:
        found = re.search(r'name="token" value="([^"]+)"', (await self.get("/console/queues")).text)
        assert found
        return found[1]

    async def act(self, path: str, **form: str) -> httpx.Response:
        return await self.post(path, token=await self.token(), **form)


@pytest.fixture
async def browser(api: Api) -> Browser:
    return Browser(api)


@asynccontextmanager
async def browsing(
    database: str, options: Options, proxy_from: tuple[str, ...] = ()
) -> AsyncIterator[Browser]:
    async with opened(
        database, replace(SETTINGS, console=Site.maker(options), proxy_from=proxy_from)
    ) as api:
        yield Browser(api)


def test_queues_come_in_order_of_need() -> None:
    queues = [
        {"queue": queue, "oldest_runnable_ms": waited, "dead": dead, "queued": queued}
        for queue, waited, dead, queued in [
            ("idle", None, 0, 0), ("deep", 5, 0, 900), ("old", 9000, 0, 1), ("dead", 5, 3, 0),
        ]
    ]  # fmt: skip
    in_order = [queue["queue"] for queue in sorted(queues, key=sickness)]
    assert in_order == ["old", "dead", "deep", "idle"]


async def test_the_root_leads_to_the_entrance(browser: Browser) -> None:
    answer = await browser.get("/", follow_redirects=True)
    assert answer.url.path == "/console/enter"
    assert "API key" in answer.text


async def test_without_a_console_there_is_none(database: str) -> None:
    async with opened(database, replace(SETTINGS, console=None)) as api:
        assert (await api.ask("GET", "/")).status_code == 404
        assert (await api.ask("GET", "/console/")).status_code == 404


async def test_a_key_opens_a_session_that_ends(browser: Browser) -> None:
    answer = await browser.sign_in(["read"])
    assert answer.status_code == 303
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie and "samesite=strict" in cookie and "path=/console" in cookie
    assert "secure" not in cookie
    assert (await browser.get("/console/")).status_code == 200
    await browser.post("/console/leave", token=await browser.token())
    assert (await browser.get("/console/")).status_code == 303


async def test_a_wrong_key_opens_nothing(browser: Browser) -> None:
    answer = await browser.post("/console/enter", key="jobq_wrong")
    assert answer.status_code == 401 and "set-cookie" not in answer.headers
    assert (await browser.sign_in(["produce", "work"])).status_code == 403


async def test_a_revoked_key_ends_its_sessions(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobq_http.auth.MEMORY", 0.0)
    await browser.sign_in(["read"])
    assert (await browser.get("/console/queues")).status_code == 200
    browser.api.run("select jobq_http.revoke_api_key(name) from jobq_http.list_api_keys()")
    assert (await browser.get("/console/queues")).status_code == 303


async def test_a_log_in_of_the_database_opens_what_it_may(browser: Browser) -> None:
    browser.api.run("create role console_op login password 'right' in role jobq_operator")
    try:
        wrong = await browser.post("/console/enter", user="console_op", password="wrong")
        assert wrong.status_code == 401
        right = await browser.post("/console/enter", user="console_op", password="right")
        assert right.status_code == 303
        await browser.act("/console/queues/pause", queue="q", reason="why")
        [actor] = browser.api.run("select actor, acting_for from jobq.audit where subject = 'q'")
        assert actor == ("console_op", None)
        await browser.post("/console/leave", token=await browser.token())
    finally:
        browser.api.run("drop role console_op")


@contextmanager
def trusted(database: str, role: str) -> Iterator[None]:
    """Let a role in without a password, as where the server trusts an address or a user."""
    with psycopg.connect(database, autocommit=True) as admin:
        [(path,)] = admin.execute("select current_setting('hba_file')").fetchall()
        before = Path(path).read_text()
        lines = "".join(
            f"{where} trust\n" for where in (f"local all {role}", f"host all {role} all")
        )
        try:
            Path(path).write_text(lines + before)
            admin.execute("select pg_reload_conf()")
            until(lambda: lets_in(database, role))
            yield
        finally:
            Path(path).write_text(before)
            admin.execute("select pg_reload_conf()")
            until(lambda: not lets_in(database, role))


def lets_in(database: str, role: str) -> bool:
    """Whether a role gets in without a password."""
    url = make_conninfo(database, user=role, password="", passfile="/nowhere")
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return False
    return True


@pytest.mark.parametrize("is_trusted", [True, False])
async def test_a_log_in_needs_its_password_whoever_the_database_believes_the_server_to_be(
    database: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, is_trusted: bool
) -> None:
    """Neither trust nor what the server's process knows lets in who has filled in the form."""
    monkeypatch.setattr("jobq_console.console.GUESSES_PER_SECOND", 1e6)
    with psycopg.connect(database, autocommit=True) as admin:
        admin.execute("create role console_op login password 'right' in role jobq_operator")
        try:
            async with browsing(database, Options()) as browser:
                tries = ["", "wrong"]
                with trusted(database, "console_op") if is_trusted else nullcontext():
                    if is_trusted:
                        tries.append("right")  # not asked for, so it proves nothing
                    else:
                        known = tmp_path / "known"
                        known.write_text("*:*:*:*:right\n")
                        known.chmod(0o600)
                        monkeypatch.setenv("PGPASSWORD", "right")
                        monkeypatch.setenv("PGPASSFILE", str(known))
                    for password in tries:
                        form = {"user": "console_op", "password": password}
                        answer = await browser.post("/console/enter", **form)
                        assert answer.status_code == 401, password
                        assert "set-cookie" not in answer.headers
        finally:
            admin.execute("drop role console_op")


async def test_an_outage_is_told_to_who_is_in_and_who_comes(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = make_conninfo(database, dbname="postgres")
    name = conninfo_to_dict(database)["dbname"]
    monkeypatch.setattr("jobq_http.auth.MEMORY", 0.0)
    async with browsing(database, Options()) as browser:
        await browser.sign_in(["read"])
        with psycopg.connect(elsewhere, autocommit=True) as admin:
            admin.execute(f"alter database {name} allow_connections false")
            try:
                admin.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s",
                    [name],
                )
                answer = await browser.post("/console/enter", user="ada", password="right")
                assert answer.status_code == 503, answer.text
                for method, path in (("GET", "queues"), ("POST", "queues/pause")):
                    away = await browser.client.request(method, f"/console/{path}")
                    assert away.status_code == 503, away.text
                    assert ">Sign out<" in away.text and ">Sign in<" not in away.text
                    assert ("may have been carried out" in away.text) == (method == "POST")
                    assert "content-security-policy" in away.headers
            finally:
                admin.execute(f"alter database {name} allow_connections true")


async def test_forms_of_others_are_refused(browser: Browser) -> None:
    await browser.sign_in(["read", "operate"])
    token = await browser.token()
    path, form = "/console/queues/pause", {"queue": "q"}
    assert (await browser.post(path, **form)).status_code == 403
    assert (await browser.post(path, token="forged", **form)).status_code == 403
    for origin in ("http://evil", "https://jobq", "http://jobq:80", "jobq", "http://jobq/"):
        elsewhere = await browser.post(path, origin=origin, token=token, **form)
        assert elsewhere.status_code == 403, origin
    nowhere = await browser.client.post(path, data={"token": token, **form})
    assert nowhere.status_code == 403
    entrance = await browser.post("/console/enter", origin="http://evil", key="k")
    assert entrance.status_code == 403
    assert browser.api.run("select count(*) from jobq.audit where action = 'pause_queue'") == [(0,)]
    assert (await browser.post(path, token=token, **form)).status_code == 303
    [who] = browser.api.run("select acting_for from jobq.audit where action = 'pause_queue'")
    assert who[0].startswith("API key ")


async def test_who_may_look_may_not_act(browser: Browser) -> None:
    [(job_id,)] = browser.api.run("select jobq.enqueue('k')")
    await browser.sign_in(["read"])
    page = (await browser.get(f"/console/jobs/{job_id}")).text
    assert "Cancel the job" not in page and "Run now" not in page
    answer = await browser.act(f"/console/jobs/{job_id}/cancel")
    assert answer.status_code == 403
    assert browser.api.run("select state from jobq.job") == [("queued",)]


async def test_readers_of_one_page_find_their_own_names_and_tokens_on_it(
    browser: Browser,
) -> None:
    found = []
    for _ in range(2):
        browser.client.cookies.clear()
        await browser.sign_in(["operate"])
        page = (await browser.get("/console/queues")).text
        name = re.search(r"API key test-\d+", page)
        assert name
        found.append((name[0], await browser.token()))
    (one, token), (other, others_token) = found
    assert one != other and token != others_token
    answer = await browser.post("/console/queues/pause", token=token, queue="mail")
    assert answer.status_code == 403


async def test_what_was_done_is_told_once_and_to_no_page_that_only_follows(
    browser: Browser,
) -> None:
    await browser.sign_in(["operate"])
    token = await browser.token()
    for _ in range(2):  # a button that was pressed twice
        await browser.post("/console/queues/pause", token=token, queue="mail")
    follows = await browser.get("/console/queues", headers={"hx-request": "true"})
    assert 'role="status"' not in follows.text
    assert (await browser.get("/console/queues")).text.count("mail is paused") == 1
    assert 'role="status"' not in (await browser.get("/console/queues")).text


async def test_what_somebody_does_is_seen_at_once(browser: Browser) -> None:
    await browser.sign_in(["operate"])
    assert ">paused<" not in (await browser.get("/console/queues")).text
    await browser.act("/console/queues/pause", queue="mail")
    assert ">paused<" in (await browser.get("/console/queues")).text


async def test_a_list_of_queues_goes_on_to_the_last_of_them(browser: Browser) -> None:
    browser.api.run("select jobq.enqueue('k', queue => 'q' || n) from generate_series(1, 200) n")
    await browser.sign_in(["read"])
    assert "More queues" not in (await browser.get("/console/queues")).text
    browser.api.run("select jobq.enqueue('k', queue => 'z' || n) from generate_series(1, 2) n")
    browser.client.cookies.clear()
    await browser.sign_in(["operate"])
    page = (await browser.get("/console/queues")).text
    assert ">z2<" not in page and ">First<" not in page
    [on] = re.findall(r'href="(/console/queues[?]first=[^"]+)">More queues, from', page)
    page = (await browser.get(unescape(on))).text
    assert re.findall(r'<th scope="row"><a [^>]*><bdi>(\w+)<', page) == ["z1", "z2"]
    assert ">First<" in page and "More queues" not in page
    overview = (await browser.get("/console/")).text
    assert overview.count(">202</a>") == 2  # so many wait, in so many queues
    browser.api.run(
        "select jobq.enqueue('k', queue => 'q1', run_at => now() + interval '1 d')"
        " from generate_series(1, 384)",
    )
    browser.api.run(
        "select jobq.enqueue('k', queue => 'zz') from generate_series(1, 3);"
        "select jobq.fail(c.job_id, c.attempt, 'no', 'NO', false)"
        " from jobq.claim('{zz}', 'w', 3) as c"
    )
    browser.client.cookies.clear()
    await browser.sign_in(["operate"])
    await browser.act("/console/queues/pause", queue="a")
    overview = (await browser.get("/console/")).text
    assert ">384 more scheduled<" in overview
    assert re.search(r'<div class="tile bad"><dt>Dead</dt><dd><a [^>]*>3<', overview)
    assert ">384</a>" in (await browser.get("/console/queues")).text
    assert "more scheduled" not in (await browser.get("/console/queue?name=z2")).text
    assert "<dt>Waiting</dt>" in (await browser.get("/console/queue?name=z2")).text
    assert "<dt>Waiting</dt>" not in (await browser.get("/console/queue?name=z")).text


async def test_the_overview_shows_figures_though_the_checks_take_too_long(browser: Browser) -> None:
    browser.api.run(
        "create or replace function jobq_private.locks_health()"
        " returns setof jobq_private.finding language sql"
        " as 'select null, true, null, null from pg_sleep(60)'"
    )
    await browser.sign_in(["read"])
    overview = await browser.get("/console/")
    assert overview.status_code == 200
    assert "could not be checked in time" in overview.text and "<dt>Dead</dt>" in overview.text


async def test_a_queue_may_have_any_name_and_any_key(browser: Browser) -> None:
    await browser.sign_in(["operate"])
    for name in ("a/b", "..", "?x&y", EVIL, " a", "a "):
        form = {"queue": name, "key": f"{name} key", "hours": "1", "reason": EVIL}
        assert (await browser.act("/console/queue/hold", **form)).status_code == 303
        address = {"name": name, "key": f"{name} key"}
        page = (await browser.get("/console/queue", params=address)).text
        assert "Starts no job until" in page and EVIL not in page
        await browser.act("/console/queue/release", queue=name, key=f"{name} key")
        page = (await browser.get("/console/queue", params=address)).text
        assert "Starts no job" not in page and "No key is held" in page


async def test_a_key_has_the_limits_of_kinds_too(browser: Browser) -> None:
    browser.api.run("select jobq.put_queue('q', key_max_running => 2)")
    browser.api.run(
        "select jobq.put_kind('shot', queue => 'q', key_max_running => 7, key_rate_limit => 1000)"
    )
    shot = "select jobq.enqueue('shot', concurrency_key => '1')"
    browser.api.run(f"{shot} from generate_series(1, 3)")
    browser.api.run("select from jobq.claim('{q}', 'w', 1)")
    await browser.sign_in(["read"])
    page = (await browser.get("/console/queue?name=q&key=1")).text
    assert "<dt>Waits</dt><dd>2</dd>" in page and ">in use<" in page
    assert "<dt>Max running, kind <bdi>shot</bdi></dt><dd>7</dd>" in page
    assert "<dt>Starts, kind <bdi>shot</bdi></dt><dd>1,000 in 1 s</dd>" in page
    assert "<dt>Max running, other kinds</dt><dd>2</dd>" in page


async def test_a_name_with_a_blank_at_an_end_is_another(browser: Browser) -> None:
    """A link from one queue to its jobs, and what is done to all of them, is for no other."""
    await browser.sign_in(["operate"])
    for name in ("work", " work", "work "):
        browser.api.run("select jobq.enqueue('of' || %s, queue => %s)", name, name)
    for name in ("work", " work", "work "):
        for path, words in (
            ("jobs", {"queue": name}),
            ("jobs", {"kind": f"of{name}"}),
            ("jobs/bulk", {"queue": name, "action": "cancel"}),
        ):
            page = await browser.get(f"/console/{path}", params=words)
            found = re.findall(r"/console/jobs/[^>]*>(?:<bdi>)?of([ work]*(?:.u0020)?)<", page.text)
            assert found == [re.sub(" $", r"\\u0020", name)]
    queues = (await browser.get("/console/queues")).text
    assert set(re.findall(r"<bdi>([^<]*work[^<]*)</bdi></a>", queues)) == {
        "work", r"\u0020work", r"work\u0020",
    }  # fmt: skip


async def test_a_page_of_an_error_leads_back(browser: Browser) -> None:
    await browser.sign_in(["operate"])

    async def ways(path: str, referer: str) -> list[str]:
        page = (await browser.get(path, headers={"referer": referer})).text
        return re.findall(r'class="button" href="([^"]*)"', page)

    lost = "/console/jobs?state=lost"
    assert await ways(lost, "http://jobq/console/queue?name=a&key=b") == [
        "/console/queue?name=a&amp;key=b", "/console/",
    ]  # fmt: skip
    for elsewhere in (
        "",
        f"http://jobq{lost}",
        "http://evil/console/jobs",
        "http://jobq/console/../x",
    ):
        assert await ways(lost, elsewhere) == ["/console/"], elsewhere


async def test_every_answer_forbids_what_is_not_its_own(browser: Browser) -> None:
    for path in ("/console/enter", "/console/nowhere", "/console/static/console.css"):
        policy = (await browser.get(path)).headers["content-security-policy"]
        assert policy.startswith("default-src 'none'") and "unsafe" not in policy
    for path in ("/console/", "/console/jobs", "/console/pulse"):
        assert (await browser.get(path)).status_code == 303


async def test_only_the_proxy_says_who_its_users_are(database: str) -> None:
    proxy = Proxy("x-user", ("read", "operate"))
    async with browsing(database, Options(proxy=proxy), ("127.0.0.1/32",)) as browser:
        answer = await browser.get("/console/queues", headers={"x-user": "ada"})
        assert answer.status_code == 200 and "user ada" in answer.text
        assert (await browser.get("/console/queues")).status_code == 303
        browser.client.cookies.clear()
        for written in ("Žofie é".encode(), "é".encode("latin-1")):
            browser.client.cookies.clear()
            page = await browser.get("/console/queues", headers=[(b"x-user", written)])
            name = "Žofie é" if len(written) > 1 else "é"
            assert f"user {name}<" in page.text
        browser.client.cookies.clear()
        https = {"x-user": "ada", "x-forwarded-proto": "https", "x-forwarded-for": "192.0.2.1"}
        given = (await browser.get("/console/queues", headers=https)).headers["set-cookie"]
        assert "Secure" in given


async def test_a_proxys_user_without_cookies_drives_nobody_out(
    database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobq_console.sessions.MOST", 25)
    proxy = Proxy("x-user", ("read",))
    async with browsing(database, Options(proxy=proxy), ("127.0.0.1/32",)) as browser:
        cookie = (await browser.sign_in(["read"])).cookies["jobq_console"]
        ada = (await browser.get("/console/queues", headers={"x-user": "ada"})).cookies
        for path in ["/console/queues"] * 30 + ["/console/static/icon.svg"]:
            browser.client.cookies.clear()
            answer = await browser.get(path, headers={"x-user": "probe"})
            assert answer.status_code == 200
        assert "set-cookie" not in answer.headers
        for headers in (
            {"cookie": f"jobq_console={cookie}"},
            {"cookie": f"jobq_console={ada['jobq_console']}", "x-user": "ada"},
        ):
            browser.client.cookies.clear()
            answer = await browser.get("/console/queues", headers=headers)
            assert answer.status_code == 200 and "set-cookie" not in answer.headers


@pytest.mark.parametrize("networks", [(), ("127.0.0.1/32",)])
async def test_a_known_proxy_alone_says_whence_a_request_comes(
    database: str, networks: tuple[str, ...]
) -> None:
    """TLS makes the cookie Secure, and each client's address has its own tries; if so said."""
    async with browsing(database, Options(), networks) as browser:
        key = browser.api.key(["read"])["authorization"].removeprefix("Bearer ")
        https = {"origin": "https://jobq", "x-forwarded-proto": "https"}
        answer = await browser.client.post("/console/enter", data={"key": key}, headers=https)
        assert ("Secure" in answer.headers.get("set-cookie", "")) == bool(networks)
        assert ("--proxy-from" in answer.text) != bool(networks)

        async def tries(addresses: list[str]) -> list[int]:
            return [
                (await browser.client.post(
                    "/console/enter",
                    data={"user": "nobody", "password": "wrong"},
                    headers={"origin": "http://jobq", "x-forwarded-for": address},
                )).status_code for address in addresses
            ]  # fmt: skip

        assert 429 in await tries(["192.0.2.1"] * 5)
        # The last address is what the proxy itself has seen; those before it may be made up.
        assert 429 in await tries([f"10.9.9.{n}, 192.0.2.1" for n in range(5)])
        assert (429 in await tries([f"192.0.2.{n}" for n in range(2, 5)])) != bool(networks)


async def test_of_two_names_in_the_proxys_header_none_is_believed(database: str) -> None:
    proxy = Proxy("x-user", ("read", "operate"))
    async with browsing(database, Options(proxy=proxy), ("127.0.0.1/32",)) as browser:
        twice = [("x-user", "root"), ("x-user", "ada")]
        assert (await browser.get("/console/queues", headers=twice)).status_code == 303


async def test_a_cookie_that_somebody_else_has_set_is_not_kept(browser: Browser) -> None:
    browser.client.cookies.set("jobq_console", "fixed", domain="jobq.local", path="/console")
    first = await browser.sign_in(["read"])
    cookie = first.cookies["jobq_console"]
    assert cookie != "fixed"
    again = await browser.sign_in(["operate"])
    assert again.cookies["jobq_console"] != cookie
    browser.client.cookies.clear()
    for old in ("fixed", cookie):
        given = {"cookie": f"jobq_console={old}"}
        assert (await browser.get("/console/queues", headers=given)).status_code == 303


async def test_from_elsewhere_the_proxys_header_says_nothing(database: str) -> None:
    proxy = Proxy("x-user", ("read", "operate"))
    async with browsing(database, Options(proxy=proxy), ("10.0.0.0/8",)) as browser:
        answer = await browser.get("/console/queues", headers={"x-user": "ada"})
        assert answer.status_code == 303


async def test_a_link_from_elsewhere_loads_once_more(browser: Browser) -> None:
    answer = await browser.get("/console/jobs?kind=a", headers={"sec-fetch-site": "cross-site"})
    assert answer.status_code == 200 and 'http-equiv="refresh"' in answer.text


async def test_the_way_on_stays_in_the_console(browser: Browser) -> None:
    key = browser.api.key(["read"])["authorization"].removeprefix("Bearer ")
    for path in (
        "//evil/console/", "///evil/console/", "https://evil/console/", "https:/console/", "/docs",
        "/console/\\evil", "/\\evil/console/", "\\\\evil", "\t//evil/console/", "/\t/evil/console/",
        "/console/\r\nset-cookie: a=b", "/console//evil", "/console/../docs", "/console/.",
        "/console/%2e%2E/docs", "/console/x/.%2e/../docs", "/console/..%2fdocs", "/console/%5cevil",
        " /console/", "/console", "/consoles/", "javascript:alert(1)//console/", "evil",
        "%2f%2fevil",
    ):  # fmt: skip
        entered = await browser.post("/console/enter", key=key, next=path)
        assert entered.headers["location"] == "/console/", path
        acted = await browser.get("/console/enter", params={"next": path})
        assert acted.headers["location"] == "/console/", path
    for path in ("/console/jobs?queue=a%2Fb//c&after=2026-03-15T14:30", "/console/dead"):
        entered = await browser.post("/console/enter", key=key, next=path)
        assert entered.headers["location"] == path


async def test_consoles_on_other_ports_of_a_host_sign_nobody_out(browser: Browser) -> None:
    """Cookies know no ports, so their names do."""
    key = browser.api.key(["read"])["authorization"].removeprefix("Bearer ")
    for port in (8080, 8081):
        entered = await browser.client.post(
            f"http://jobq:{port}/console/enter",
            data={"key": key},
            headers={"origin": f"http://jobq:{port}"},
        )
        assert entered.status_code == 303
    for port in (8080, 8081):
        assert (await browser.get(f"http://jobq:{port}/console/queues")).status_code == 200
    assert (await browser.get("http://jobq/console/queues")).status_code == 303


async def test_jobs_are_found_by_metadata_of_any_type(browser: Browser) -> None:
    await browser.sign_in(["read"])
    browser.api.run(
        """select jobq.enqueue(kind, metadata => metadata) from (values
            ('text', '{"n": "7"}'::jsonb), ('number', '{"n": 7, "on": true}')) as t (kind, metadata)
        """
    )
    for asked, found in {
        "n=7": "text", "n:=7": "number", "on := true": "number", '{"n": 7, "on": true}': "number",
    }.items():  # fmt: skip
        page = await browser.get("/console/jobs", params={"metadata": asked})
        assert re.findall(r">(text|number)</", page.text) == [found], asked
    for bad in ("n", "n:=", "n:=seven", "{", "[7]"):
        page = await browser.get("/console/jobs", params={"metadata": bad})
        assert page.status_code == 400 and "tenant=acme, retries:=3" in page.text, bad


def test_a_minute_without_neighbours_is_a_point() -> None:
    """A line needs two points."""
    history = {
        "since": "2026-03-15T14:00:00Z", "until": "2026-03-15T14:10:00Z", "width_ms": 60_000,
        "latency": [[2, 10, 100], [3, 10, 100], [7, 100, 1000]],
    }  # fmt: skip
    (line, dots, _), (_, slow_dots, _) = latency(history).lines
    assert line.count("L") == 1 and dots.count("M") == slow_dots.count("M") == 1
    assert dots.startswith("M750.0 75.0") and slow_dots.startswith("M750.0 37.5")


def test_a_time_line_says_how_long_each_sort_lasted_in_all() -> None:
    def at(minute: int) -> str:
        return f"2026-03-15T14:{minute:02}:00Z"

    job = {"created_at": at(0), "finished_at": at(20), "state": "dead"}
    attempts = [
        {
            "attempt_number": n,
            "status": "FAILED",
            "started_at": at(began),
            "completed_at": at(ended),
        }
        for n, began, ended in ((1, 3, 4), (2, 9, 11), (3, 15, 20))
    ]
    assert legend(time_line(job, attempts)) == [
        ("waited", "waited", "3 min"),
        ("failed", "failed", "8 min"),
        ("backed", "backed off", "9 min"),
    ]


async def test_what_jobs_say_is_text(browser: Browser) -> None:
    payload = '{"a": "<script>alert(1)</script>", "b": "\u202eevil", "n": 1.10000000000000000001}'
    [(job_id,)] = browser.api.run(
        "select jobq.enqueue(%s, %s, queue => %s, metadata => %s)", EVIL, payload, EVIL, payload
    )
    [(claimed, attempt)] = browser.api.run(
        "select job_id, attempt from jobq.claim(array[%s], %s)", EVIL, EVIL
    )
    browser.api.run("select jobq.log(%s, %s, 'ERROR', %s)", claimed, attempt, EVIL)
    browser.api.run(
        "select jobq.fail(%s, %s, %s, %s, false, details => %s)",
        claimed, attempt, EVIL, EVIL, payload,
    )  # fmt: skip
    await browser.sign_in(["read", "operate"])
    for path in ("", "queues", "jobs", f"jobs/{job_id}", "jobs/bulk?action=redrive"):
        page = (await browser.get(f"/console/{path}")).text
        assert EVIL not in page and "\u202e" not in page
    page = (await browser.get(f"/console/jobs/{job_id}")).text
    assert "1.10000000000000000001" in page and "\\u202e" in page
    assert EVIL in unescape(page)
    found = await browser.get("/console/jobs", params={"kind": EVIL, "error": EVIL})
    assert "<strong>1</strong>" in found.text and EVIL not in found.text


async def test_payloads_can_be_hidden(database: str) -> None:
    async with browsing(database, Options(hides_payloads=True)) as browser:
        [(job_id,)] = browser.api.run("""select jobq.enqueue('k', '{"card": "4111"}')""")
        await browser.sign_in(["read"])
        page = await browser.get(f"/console/jobs/{job_id}")
        assert page.status_code == 200 and "4111" not in page.text
        assert (await browser.get(f"/console/jobs/{job_id}/payload.json")).status_code == 403
        browser.api.run(
            "select jobq.enqueue('d', queue => 'd', metadata => '{\"card\": \"4111\"}')"
        )
        browser.api.run(
            "select jobq.fail(job_id, attempt, 'E', 'e', false) from jobq.claim(array['d'], 'w')"
        )
        page = await browser.get("/console/dead")
        assert "<h2><bdi>d</bdi>" in page.text and "4111" not in page.text
        await browser.sign_in(["operate"])
        for path in ("jobs?", "jobs/bulk?action=redrive&"):
            assert (await browser.get(f"/console/{path}metadata=")).status_code == 200
            guess = await browser.get(f"/console/{path}metadata=card=4111")
            assert guess.status_code == 403 and "cannot be searched" in guess.text
        assert 'name="metadata"' not in (await browser.get("/console/jobs")).text


async def test_a_large_payload_is_cut_and_can_be_had(browser: Browser) -> None:
    [(job_id,)] = browser.api.run(
        "select jobq.enqueue('k', jsonb_build_object('text', repeat('x', 1000000)))"
    )
    await browser.sign_in(["read"])
    page = (await browser.get(f"/console/jobs/{job_id}")).text
    assert len(page) < 500_000 and "Truncated after 64 KB" in page
    file = await browser.get(f"/console/jobs/{job_id}/payload.json")
    assert len(file.json()["text"]) == 1_000_000
    assert "attachment" in file.headers["content-disposition"]
    assert f"\\set payload `cat {job_id}-payload.json`" in page
    assert f"cat {job_id}-payload.json; echo" in page


async def test_a_log_is_shown_from_its_end_and_leads_back(browser: Browser) -> None:
    [(job_id,)] = browser.api.run("select jobq.enqueue('talkative')")
    browser.api.run("select from jobq.claim_job(%s, 'w')", job_id)
    browser.api.run(
        "select jobq.log(%s, 1, 'INFO', 'line ' || n || '.') from generate_series(1, 250) as n",
        job_id,
    )
    await browser.sign_in(["read"])
    page = (await browser.get(f"/console/jobs/{job_id}")).text
    assert re.findall(r"line (\d+)\.", page) == [str(n) for n in range(51, 251)]
    [earlier] = re.findall(r'href="(/console/jobs/[^"]*before=\d+)"', page)
    back = (await browser.get(earlier)).text
    assert re.findall(r"line (\d+)\.", back) == [str(n) for n in range(1, 51)]
    assert "Earlier lines" not in back


async def test_a_schedules_payload_is_shown_and_can_be_had(browser: Browser) -> None:
    [(name,)] = browser.api.run(
        "select jobq.create_schedule('s', 'k', '@daily', payload => '{\"a\": [1]}')"
    )
    await browser.sign_in(["read"])
    page = (await browser.get(f"/console/schedules/{name}")).text
    assert '"a": [\n    1\n  ]' in unescape(page)
    lead = await browser.get(f"/console/jobs/{name}")
    assert lead.status_code == 303 and lead.headers["location"] == f"/console/schedules/{name}"
    file = await browser.get(f"/console/schedules/{name}/payload.json")
    assert file.json() == {"a": [1]}


@pytest.mark.parametrize(
    ("payload", "shown"),
    [
        ('{"n": 3.10000000000000000000001}', "&#34;n&#34;: 3.10000000000000000000001"),
        ('"<script>"', "&#34;&lt;script&gt;&#34;"),
        ('{"</b>": "\\u202e"}', "&#34;&lt;/b&gt;&#34;: &#34;\\u202e&#34;"),
    ],
)
async def test_a_payload_is_shown_with_all_digits_and_as_text(
    browser: Browser, payload: str, shown: str
) -> None:
    [(job_id,)] = browser.api.run("select jobq.enqueue('k', %s)", payload)
    await browser.sign_in(["read"])
    assert shown in (await browser.get(f"/console/jobs/{job_id}")).text


async def test_counts_end_at_ten_thousand(browser: Browser) -> None:
    browser.api.run("select jobq.enqueue('many') from generate_series(1, 10001)")
    await browser.sign_in(["operate"])
    for path in ("jobs?kind=many", "jobs/bulk?action=cancel&kind=many", "", "queues"):
        page = (await browser.get(f"/console/{path}")).text
        assert ">10,000+<" in page, path
        assert "10,001" not in page, path


async def test_bad_addresses_are_answered_in_words(browser: Browser) -> None:
    await browser.sign_in(["read", "operate"])
    for path, status in {
        "/console/jobs/nothing": 404,
        "/console/jobs/00000000-0000-7000-8000-000000000000": 404,
        "/console/jobs?state=lost": 400,
        "/console/jobs?after=noon": 400,
        "/console/jobs?metadata=%7B": 400,
        "/console/jobs?before=x": 400,
        "/console/?span=x": 400,
        "/console/?by=x": 400,
        "/console/audit?before=x": 400,
        "/console/jobs?state=,,,": 400,
        "/console/jobs?kind=a%00b": 400,
        "/console/jobs?kind=%ff": 400,
        "/console/jobs/bulk?action=destroy": 404,
        "/console/nowhere": 404,
    }.items():
        answer = await browser.get(path)
        assert answer.status_code == status, path
        assert "text/html" in answer.headers["content-type"]


async def test_a_slow_question_is_refused(database: str) -> None:
    options = Options()
    async with browsing(database, options) as browser:
        [(job_id,)] = browser.api.run("select jobq.enqueue('k')")
        await browser.sign_in(["read", "operate"])
        with psycopg.connect(database) as holder:
            holder.execute("select from jobq_private.job for update")
            answer = await browser.act(f"/console/jobs/{job_id}/cancel")
        assert answer.status_code == 504 and "Narrow the search" in answer.text


def test_a_console_by_itself_lets_in_once(database: str) -> None:
    command = [sys.executable, "-m", "jobq_cli", "console", "--database", database]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            with httpx.Client(trust_env=False, timeout=60) as client:
                page = client.get(address, follow_redirects=True)
                assert page.status_code == 200 and "Overview" in page.text
            assert httpx.get(address, trust_env=False, timeout=60).status_code == 403
        finally:
            server.terminate()


async def test_endpoints_of_every_type_are_shown(browser: Browser) -> None:
    specs = {
        "HTTP": '{"url": "https://a.example/where"}',
        "KAFKA": '{"bootstrap_servers": "a.example:9092", "topic": "where-kafka"}',
        "REDIS_STREAM": '{"redis_url": "redis://a.example", "stream": "where-redis"}',
    }
    for type_, spec in specs.items():
        browser.api.run("select jobq.put_endpoint(%s, %s, %s)", f"e{len(spec)}", type_, spec)
    await browser.sign_in(["read"])
    page = await browser.get("/console/endpoints")
    assert page.status_code == 200
    for where in ("https://a.example/where", "where-kafka", "where-redis"):
        assert where in page.text


async def test_an_error_names_its_request(browser: Browser) -> None:
    answer = await browser.get("/console/nowhere", headers={"x-request-id": "req_mine"})
    assert "req_mine" in answer.text


def hidden(page: str) -> dict[str, str]:
    """Return what the form of a preview carries."""
    [form] = re.findall(r'action="/console/jobs/bulk".*?</form>', page, re.DOTALL)
    found = re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form)
    return {name: unescape(value) for name, value in found}


async def test_an_action_is_for_those_jobs_that_were_counted(browser: Browser) -> None:
    browser.api.run("select jobq.enqueue('few') from generate_series(1, 2)")
    await browser.sign_in(["read", "operate"])
    form = hidden((await browser.get("/console/jobs/bulk?action=cancel&kind=few")).text)
    browser.api.run("select jobq.enqueue('few', queue => 'new') from generate_series(1, 4)")
    assert (await browser.post("/console/jobs/bulk", **form)).status_code == 303
    of_each = "select queue, state, count(*) from jobq.job group by 1, 2 order by 1"
    assert browser.api.run(of_each) == [("default", "cancelled", 2), ("new", "queued", 4)]
    again = await browser.post("/console/jobs/bulk", **form)
    assert again.status_code == 303
    forgotten = await browser.post("/console/jobs/bulk", **{**form, "counted": "x"})
    assert forgotten.status_code == 400 and "selection has expired" in forgotten.text
    assert browser.api.run(of_each)[1] == ("new", "queued", 4)


async def test_what_comes_to_fit_after_the_preview_is_left(browser: Browser) -> None:
    """An older job that changes meanwhile fits the filter, but nobody has seen it."""
    run = browser.api.run
    [older], [seen], [newer] = (run("select jobq.enqueue('k', queue => 'q')")[0] for _ in range(3))
    for job_id in (seen, older, newer):
        run("select from jobq.claim_job(%s, 'w')", job_id)
    run("select jobq.fail(%s, 1, 'x', retry_in => '1 h')", seen)
    await browser.sign_in(["read", "operate"])
    form = hidden((await browser.get("/console/jobs/bulk?action=cancel&state=retrying")).text)
    run("select jobq.fail(x, 1, 'x', retry_in => '1 h') from unnest(%s) as x", [older, newer])
    await browser.post("/console/jobs/bulk", **form)
    assert run("select job_id, state from jobq.job order by job_id") == [
        (older, "retrying"), (seen, "cancelled"), (newer, "retrying"),
    ]  # fmt: skip
    assert "Cancel: 1 job." in (await browser.get("/console/queues")).text


async def to_the_end(
    browser: Browser, address: str, meanwhile: Callable[[], object] = lambda: None
) -> str:
    """Press the button of a bulk action until it has ended, and return what is told then."""
    page = await browser.get(f"/console/jobs/bulk?{address}")
    for _ in range(9):
        page = await browser.post("/console/jobs/bulk", **hidden(page.text))
        if page.status_code == 303:
            told = re.search(r'role="status">([^<]*)<', (await browser.get("/console/queues")).text)
            assert told
            return told[1]
        meanwhile()
    raise AssertionError(page.text)


async def test_a_long_action_takes_each_job_once(browser: Browser) -> None:
    """What still fits after its turn, as what runs or is due, has no second one."""
    run = browser.api.run
    run("select jobq.put_kind('many', max_attempts => 1)")
    run(
        "select jobq.enqueue('many', queue => 'q', run_at => now() + interval '1 day')"
        " from generate_series(1, 700)"
    )
    await browser.sign_in(["read", "operate"])
    preview = (await browser.get("/console/jobs/bulk?action=run&kind=many")).text
    assert "with JavaScript the page then goes on by itself" in preview
    page = (await browser.post("/console/jobs/bulk", **hidden(preview))).text
    assert "500 may run now; 500 in all." in page
    assert ">Run now 200<" in page and "goes on by itself" not in page
    await browser.post("/console/jobs/bulk", **hidden(page))
    assert run("select count(*) from jobq.job where run_at <= now()") == [(700,)]

    def die() -> int:
        return len(run(
            "select jobq.fail(c.job_id, c.attempt, 'x', 'X', false)"
            " from jobq.claim('{q}', 'w', 1000) as c"
        ))  # fmt: skip

    assert die() == 700
    assert await to_the_end(browser, "action=redrive&kind=many", die) == "Redrive: 700 jobs."
    die()
    attempts = "(select count(*) as n from jobq.attempt group by job_id)"
    assert run(f"select min(n), max(n) from {attempts} as a") == [(2, 2)]

    run("select jobq.redrive_many(kind => 'many')")
    run("select from jobq.claim('{q}', 'w', 500)")
    assert await to_the_end(browser, "action=cancel&kind=many") == "Cancel: 700 jobs."
    assert run("select state, count(*) from jobq.job group by 1 order by 1") == [
        ("cancelled", 200), ("running", 500),
    ]  # fmt: skip


async def test_what_has_died_since_the_preview_is_not_redriven(browser: Browser) -> None:
    run = browser.api.run
    run("select jobq.put_kind('k', max_attempts => 1)")
    ids = [run("select jobq.enqueue('k')")[0][0] for _ in range(3)]

    def die(job_id: object) -> None:
        run(
            "select jobq.fail(c.job_id, c.attempt, 'x', 'X', false)"
            " from jobq.claim_job(%s, 'w') as c",
            job_id,
        )

    for job_id in ids[1:]:
        die(job_id)
    await browser.sign_in(["read", "operate"])
    form = hidden((await browser.get("/console/jobs/bulk?action=redrive&kind=k")).text)
    die(ids[0])
    run("select jobq.redrive(%s)", ids[2])
    await browser.post("/console/jobs/bulk", **form)
    states = run("select state from jobq.job order by job_id")
    assert states == [("dead",), ("queued",), ("queued",)]
    told = (await browser.get("/console/queues")).text
    assert "Redrive: 1 of 2 jobs. The others have changed" in told


async def test_who_may_only_look_is_shown_no_action(browser: Browser) -> None:
    browser.api.run("select jobq.enqueue('k')")
    await browser.sign_in(["read"])
    answer = await browser.get("/console/jobs/bulk?action=cancel")
    assert answer.status_code == 403 and "/console/jobs/bulk" not in answer.text


@pytest.mark.parametrize(
    ("page", "its_own"),
    [
        ("", "span=day&by=kind"),
        ("queues", ""),
        ("queue", "name=q&key=k"),
        ("jobs", "state=dead&state=queued&kind=k&queue=q&error=E&worker=w&metadata=a%3Db"),
        ("jobs", "after=2026-03-15T14:30&until=2026-03-15T14:31&before="),
        ("jobs/bulk", "action=cancel&queue=q&state=queued"),
        ("dead", ""),
        ("schedules", "before="),
        ("workers", ""),
        ("endpoints", "after="),
        ("audit", "subject=q&before=7"),
    ],
)
async def test_a_parameter_that_a_page_does_not_know_is_refused(
    browser: Browser, page: str, its_own: str
) -> None:
    await browser.sign_in(["read", "operate"])
    assert (await browser.get(f"/console/{page}?{its_own}")).status_code == 200
    answer = await browser.get(f"/console/{page}?{its_own}&quue=mail")
    assert answer.status_code == 400 and "quue" in answer.text


async def test_another_like_it_has_all_that_the_job_has(browser: Browser) -> None:
    name = "it's a \\ \u202e\U000e0041"
    options = (7, 3, "1500 ms", "2.5", name, '{"\\u202e\U000e0041": "it\'s"}')
    [(job_id,)] = browser.api.run(
        "select jobq.enqueue(%s, %s, queue => %s, priority => %s, max_attempts => %s,"
        " timeout => %s::interval, cost => %s, concurrency_key => %s, metadata => %s)",
        name, '{"a": ["<&>", "\U000e0041"]}', name, *options,
    )  # fmt: skip
    await browser.sign_in(["read"])
    page = (await browser.get(f"/console/jobs/{job_id}")).text
    as_sql, as_curl = (
        unescape(found) for found in re.findall(r'id="as-\w+">(.*?)</pre>', page, re.DOTALL)
    )
    browser.api.run(as_sql.replace("%", "%%"))
    body = re.search(r"<<'END'\n(.*)\nEND", as_curl, re.DOTALL)
    assert body
    headers = {**browser.api.key(["produce"]), "content-type": "application/json"}
    answer = await browser.client.post("/jobs", content=body[1], headers=headers)
    assert answer.status_code == 201, answer.text
    jobs = browser.api.run(
        "select kind, payload, queue, priority, max_attempts, timeout, cost, concurrency_key,"
        " metadata from jobq_private.job"
    )
    assert len(jobs) == 3 and jobs[0] == jobs[1] == jobs[2]


@pytest.mark.parametrize(
    "letter",
    "\xa0\xad\u034f\u115f\u17b4\u180e\u2000\u200a\u200b\u202e\u202f\u2800\u3000\u3164\ufe00\ufe0f\ufeff"
    "\ufff9\ufffb\U000e0001\U000e0041\U000e007f\U000e0100\U000e01ef",
)
def test_what_is_unseen_is_made_visible(letter: str) -> None:
    shown = plain(f"a{letter}b c")
    assert shown.isascii() and json.loads(f'"{shown}"') == f"a{letter}b c"


@pytest.mark.parametrize("is_revoked", [True, False])
async def test_a_page_is_told_of_changes_until_its_session_ends(
    browser: Browser, is_revoked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("jobq_http.auth.MEMORY", 0.0)
    await browser.sign_in(["read"])
    token = await browser.token()
    first = await browser.get("/console/pulse")
    browser.api.run("select jobq.enqueue('a')")
    async with asyncio.timeout(30):
        while (now := await browser.get("/console/pulse")).text == first.text:
            await asyncio.sleep(0.05)
    assert now.status_code == 200
    if is_revoked:
        browser.api.run("select jobq_http.revoke_api_key(name) from jobq_http.list_api_keys()")
    else:
        await browser.post("/console/leave", token=token)
    assert (await browser.get("/console/pulse")).status_code == 303


async def test_a_queue_names_who_serves_it(browser: Browser) -> None:
    await browser.sign_in(["operate"])
    assert "no worker" in (await browser.get("/console/queue?name=mail")).text
    browser.api.run("select from jobq.heartbeat('post office', '{}', '{}', '{mail,other}')")
    browser.api.run("select from jobq.heartbeat('somebody else', '{}', '{}', '{other}')")
    await browser.act("/console/queues/pause", queue="mail")
    page = (await browser.get("/console/queue?name=mail")).text
    assert ">post office<" in page.replace("<bdi>", "").replace("</bdi>", "")
    assert "no worker" not in page and "somebody else" not in page


async def test_a_job_is_found_by_the_end_of_its_id_its_keys_its_error_and_its_payload(
    browser: Browser,
) -> None:
    await browser.sign_in(["read"])
    [(job_id,)] = browser.api.run(
        'select jobq.enqueue(\'sought\', \'{"user": {"id": 7, "name": "ada"}}\','
        " idempotency_key => 'order-17', concurrency_key => 'tenant-9')"
    )
    browser.api.run("select jobq.enqueue('other')")
    browser.api.run(f"select from jobq.claim_job('{job_id}', 'w')")
    browser.api.run(f"select jobq.fail('{job_id}', 1, '550 mailbox unavailable')")
    for search in (str(job_id)[-6:], "order-17", "tenant-9", "Mailbox unav"):
        found = await browser.get(
            "/console/jobs/find", params={"search": search}, follow_redirects=True
        )
        assert f"/console/jobs/{job_id}" in found.text, search
        assert found.text.count('data-th="State"') == 1, search
    for payload in ("user.id:=7", "user.name=ada", '{"user": {"id": 7}}'):
        found = await browser.get("/console/jobs", params={"payload": payload})
        assert found.text.count('data-th="State"') == 1, payload
    assert "order-17" not in (await browser.get("/console/jobs?search=tenant-8")).text
    led = await browser.get("/console/jobs/find", params={"search": str(job_id)})
    assert led.headers["location"] == f"/console/jobs/{job_id}"


async def test_selected_jobs_are_acted_on_and_no_others(browser: Browser) -> None:
    await browser.sign_in(["read", "operate"])
    ids = [browser.api.run("select jobq.enqueue('k')")[0][0] for _ in range(3)]
    query = "&".join(f"ids={i}" for i in ids[:2])
    page = (await browser.get(f"/console/jobs/bulk?action=cancel&{query}")).text
    await browser.post("/console/jobs/bulk", **hidden(page))
    states = dict(browser.api.run("select job_id, state from jobq.job"))
    assert [states[i] for i in ids] == ["cancelled", "cancelled", "queued"]
    assert (await browser.get("/console/jobs?ids=nonsense")).status_code == 400


async def test_a_traceback_keeps_its_lines(browser: Browser) -> None:
    await browser.sign_in(["read"])
    [(job_id,)] = browser.api.run("select jobq.enqueue('k', max_attempts => 1)")
    browser.api.run(f"select from jobq.claim_job('{job_id}', 'w')")
    browser.api.run(
        f"select jobq.fail('{job_id}', 1, E'line 1\\n  line 2',"
        " details => jsonb_build_object('traceback', E'File a\\n  File b'))"
    )
    page = (await browser.get(f"/console/jobs/{job_id}")).text
    assert "File a\n  File b" in unescape(page) and 'data-fold="attempt-1"' in page
    style = (await browser.get("/console/static/console.css")).text
    assert ".lines bdi { white-space: pre-wrap" in style


async def test_steps_graphs_batches_waits_and_definitions_have_pages(browser: Browser) -> None:
    await browser.sign_in(["read"])
    run = browser.api.run
    [(job_id,)] = run("select jobq.enqueue('agent')")
    run(f"select from jobq.claim_job('{job_id}', 'w')")
    run(f"select jobq.save_step('{job_id}', 1, 'charged', '{{\"amount\": 12}}')")
    assert "charged" in (await browser.get(f"/console/jobs/{job_id}")).text
    run("""select jobq.enqueue_graph('{"jobs": [
        {"name": "fetch", "kind": "k"}, {"name": "join", "kind": "k", "after": ["fetch"]}]}')""")
    [(batch_id,)] = run("select jobq.open_batch()")
    run(f"select jobq.enqueue('member', batch_id => '{batch_id}')")
    run("""select jobq.put_endpoint('hook', 'HTTP', '{"url": "https://example.com/"}')""")
    page = (await browser.get("/console/workflows")).text
    assert "fetch" in page and f"/console/batches/{batch_id}" in page
    batch = (await browser.get(f"/console/batches/{batch_id}")).text
    assert f"/console/jobs?batch={batch_id}&amp;state=queued" in batch
    members = (await browser.get(f"/console/jobs?batch={batch_id}")).text
    assert "member" in members and members.count('data-th="State"') == 1
    assert "https://example.com/" in (await browser.get("/console/definitions")).text
    assert (await browser.get("/console/definitions?type=secret")).status_code == 200
    assert (await browser.get("/console/definitions?type=nonsense")).status_code == 400
    assert (await browser.get("/console/batches/nonsense")).status_code == 400


async def test_a_console_works_under_the_prefix_of_a_proxy(database: str) -> None:
    async with browsing(database, Options(prefix="/tools/jobq")) as browser:
        answer = await browser.sign_in(["read", "operate"])
        assert answer.headers["location"] == "/tools/jobq/console/"
        assert "path=/tools/jobq/console" in answer.headers["set-cookie"].lower()
        # The proxy removes the prefix; a browser sends the cookie there alone.
        cookie = answer.headers["set-cookie"].split(";")[0]
        browser.client.headers["cookie"] = cookie
        for path in (
            "",
            "queues",
            "jobs",
            "dead",
            "schedules",
            "workers",
            "workflows",
            "definitions",
        ):
            page = (await browser.get(f"/console/{path}")).text
            links = re.findall(r'(?:href|src|action|data-live|data-stream)="([^"]+)"', page)
            inner = [link for link in links if not link.startswith(("#", "?"))]
            assert inner and all(link.startswith("/tools/jobq/console") for link in inner), path
        answer = await browser.act("/console/queues/pause", queue="q", reason="why")
        assert answer.headers["location"] == "/tools/jobq/console/queues"


def test_the_guide_shows_pictures_that_are_taken_by_the_browser() -> None:
    shown = set(re.findall(r"\(console/([\w-]+)\.png\)", (ROOT / "docs/console.md").read_text()))
    assert shown == set(SHOWN)
    assert {path.stem for path in PICTURES.glob("*.png")} == shown
