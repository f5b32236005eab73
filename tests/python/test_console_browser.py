"""The console in a real browser: an operator's night, every page, without JavaScript, narrow.

The pictures of docs/console.md are taken here: JOBQ_SCREENSHOTS=1 writes them anew.
"""

from __future__ import annotations

import os
import re
import shutil
from base64 import b64encode
from contextlib import asynccontextmanager, contextmanager
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import psycopg
import pytest
import pytest_asyncio
from http_api import SETTINGS, Api, served
from playwright.async_api import Browser, Page, async_playwright, expect
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from jobq_delivery import Keyring, approval_link
from servers import ROOT

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from contextlib import AbstractAsyncContextManager

    Visiting = Callable[..., AbstractAsyncContextManager[tuple[Page, Api, list[str]]]]

# One browser serves all tests, each in a context of its own.
pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.xdist_group("browser")]
expect.set_options(timeout=60_000)
PICTURES = ROOT / "docs" / "console"
AXE = (ROOT / "tests" / "axe" / "axe.min.js").read_text()
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
]  # fmt: skip
PATIENCE = 60_000
HOUR = timedelta(hours=1)
SHOWN = (
    "overview", "dead", "job", "queues", "queue", "graph", "overview-dark", "overview-narrow",
    "queues-narrow",
)  # fmt: skip
PAGES = (
    "", "queues", "jobs", "dead", "schedules", "workflows", "approvals", "workers", "endpoints",
    "definitions", "audit",
)  # fmt: skip
WIDE_FONT = "* { font-family: monospace !important; } body { font-size: 115%; }"
WIDTHS = """(table, style) => {
    const sheet = new CSSStyleSheet();
    sheet.replaceSync(style);
    document.adoptedStyleSheets = [sheet];
    return [table.scrollWidth, table.parentElement.clientWidth];
}"""
HOSTILE = "<script>document.title='owned'</script><img src=x onerror=alert(1)> \u202egnp"
SETUP = """
select jobq.put_queue('reports', max_depth => 5000);
select jobq.pause_queue('sms', 'the provider is down');
select jobq.create_schedule('nightly report', 'report', '0 3 * * *', queue => 'reports');
select jobq.create_schedule('weekly bill', 'bill', '30 7 * * 1', time_zone => 'Europe/Berlin');
select jobq.put_endpoint('send-welcome', 'HTTP', '{"url": "https://api.example.com/welcome"}');
select jobq.put_limit('mail', 'tenant-7', 3);
select jobq.heartbeat('mailer:1', '{}', '{}', '{mail,default}');
select jobq.put_queue('billing', key_max_running => 1, max_running => 50);
select jobq.enqueue('bill', queue => 'billing', concurrency_key => 'customer-' || (n + 1) / 2)
from generate_series(1, 6) as n;
select jobq.hold_key('billing', 'customer-3', 'infinity', 'unpaid');
select from jobq.claim('{billing}', 'biller:2', 6);
select from jobq.enqueue_graph('{"jobs": [
    {"name": "orders", "kind": "fetch", "queue": "flow"},
    {"name": "customers", "kind": "fetch", "queue": "flow"},
    {"name": "join", "kind": "join", "queue": "flow", "after": ["orders", "customers"]},
    {"name": "invoice EU", "kind": "invoice", "queue": "flow", "after": ["join"]},
    {"name": "invoice US", "kind": "invoice", "queue": "flow", "after": ["join"]},
    {"name": "report", "kind": "report", "queue": "flow",
        "after": ["orders", "invoice EU", "invoice US"]}
]}');
select jobq.enqueue('send_email', jsonb_build_object('to', 'ada@example.org', 'n', n),
    queue => 'mail', max_attempts => 3, metadata => '{"tenant": "acme"}')
from generate_series(1, 40) as n;
select jobq.complete(c.job_id, c.attempt, '{"message_id": "a1"}')
from jobq.claim('{mail}', 'mailer:1', 20) as c;
select jobq.fail(c.job_id, c.attempt, '550 mailbox unavailable', 'RECIPIENT_REFUSED', false,
    details => '{"smtp": 550}')
from jobq.claim('{mail}', 'mailer:1', 12) as c;
select from jobq.claim('{mail}', 'mailer:1', 3);
select jobq.enqueue('refund', queue => 'agents');
select jobq.ask(c.job_id, c.attempt, 'refund', E'Refund 5 euro?\nThe customer waits.', '{
    "type": "object", "required": ["cents", "how"], "properties": {
        "cents": {"type": "integer", "title": "Cents", "minimum": 1, "maximum": 500},
        "how": {"enum": ["card", "voucher"], "title": "How"},
        "tell": {"type": "boolean", "title": "Tell the customer", "default": true},
        "note": {"type": "string", "title": "Note"},
        "more": {"type": "object", "title": "More"}
    }
}', '3 days') from jobq.claim('{agents}', 'agent:7', 1) as c;
insert into jobq_private.history
select 1, date_trunc('minute', now()) - n * interval '1 min', q, 'send_email', v, v - 10, v / 30,
    case when n < 9 then 40 else 0 end, n % 3
from generate_series(1, 60) as n
cross join unnest('{mail,default,reports}'::text[]) as q
cross join lateral (select (abs(sin(n / 9.0 + length(q))) * 900)::integer + 90) as s (v)
on conflict do nothing;
insert into jobq_private.latency
select 1, date_trunc('minute', now()) - n * interval '1 min', array(
    select (1000 * exp(-((k - 14 - 3 * sin(n / 7.0)) ^ 2) / 8.0))::bigint
    from generate_series(0, 49) as k
)
from generate_series(1, 60) as n
on conflict do nothing;
"""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def browser() -> AsyncIterator[Browser]:
    """Debian's chromium, driven."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    assert chromium is not None, "chromium is missing: run .ci/packages test"
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        try:
            yield launched
        finally:
            await launched.close()


@pytest.fixture
def visiting(browser: Browser, database: str) -> Visiting:
    """A function that gives `visited` what it needs."""
    return partial(visited, browser, database)


@asynccontextmanager
async def visited(
    browser: Browser, database: str, scopes: list[str], **options: Any
) -> AsyncIterator[tuple[Page, Api, list[str]]]:
    """A page of somebody who has signed in, the API, and what went wrong on pages."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(SETUP)
    async with (
        served(database, SETTINGS) as api,
        await browser.new_context(base_url=str(api.client.base_url), **options) as context,
    ):
        context.set_default_timeout(PATIENCE)
        page = await context.new_page()
        wrong: list[str] = []
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("console", lambda said: wrong.append(said.text) if said.type == "error" else None)
        page.on("dialog", lambda dialog: wrong.append(dialog.message))
        await page.goto("/")
        key = api.key(scopes)["authorization"].removeprefix("Bearer ")
        await page.get_by_label("API key").fill(key)
        await page.get_by_role("button", name="Sign in").first.click()
        await expect(page.get_by_role("heading", name="Overview")).to_be_visible(timeout=PATIENCE)
        yield page, api, wrong


async def check(page: Page, name: str) -> None:
    """Let axe look at a page, and take its picture."""
    await page.evaluate(AXE)
    found = await page.evaluate("axe.run({runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa']})")
    grave = [
        (v["id"], [node["html"][:200] for node in v["nodes"]][:3])
        for v in found["violations"]
        if v["impact"] in {"serious", "critical"}
    ]
    assert grave == [], f"{name}: {grave}"
    await picture(page, name)


async def picture(page: Page, name: str) -> None:
    """Take a page's picture, if it is to be shown."""
    if name in SHOWN and os.environ.get("JOBQ_SCREENSHOTS"):
        PICTURES.mkdir(exist_ok=True)
        await page.screenshot(path=PICTURES / f"{name}.png")


@pytest.mark.long
async def test_an_operators_night(visiting: Visiting) -> None:
    """Something is red; what, why; it is redriven, and a worker that comes back does it."""
    size = {"width": 1180, "height": 760}
    async with visiting(["read", "operate"], viewport=size) as (page, api, wrong):
        await check(page, "overview")
        tile = page.locator(".tile", has_text="Dead")
        await expect(tile).to_contain_text("12")
        await tile.get_by_role("link").click()
        await check(page, "dead")
        group = page.locator(".groups li", has_text="RECIPIENT_REFUSED")
        await expect(group).to_contain_text("tenant=acme")
        await group.get_by_role("link", name="open").click()
        await expect(page.locator(".why")).to_contain_text("550 mailbox unavailable")
        await page.get_by_text("Details").click()
        await expect(page.locator("td.error")).to_contain_text("smtp")
        await check(page, "job")
        await page.go_back()
        await page.locator(".groups li").get_by_role("link", name="Redrive").click()
        await expect(page.locator(".count")).to_contain_text("12 jobs fit")
        await check(page, "redrive")
        await page.get_by_role("button", name="Redrive 12").click()
        await expect(page.get_by_role("status")).to_contain_text("Redrive: 12 jobs")
        await expect(page.get_by_text("No jobs are dead.")).to_be_visible()
        [(reds,)] = api.run("select count(*) from jobq.audit where acting_for like 'API key %%'")
        assert reds >= 1

        # The page follows by itself what a worker does.
        await page.get_by_role("link", name="Queues").click()
        row = page.locator("tbody tr", has_text="mail")
        await expect(row.locator("td").first).to_have_text("17")
        api.run(
            "select jobq.complete(c.job_id, c.attempt) from jobq.claim('{mail}', 'mailer:1', 17) c"
        )
        await expect(row.locator("td").first).to_have_text("0")
        await check(page, "queues")
        await page.get_by_role("row", name="mail").get_by_text("Pause…").click()
        await page.get_by_placeholder("why, for others").locator("visible=true").fill("looking")
        await page.get_by_role("button", name="Pause", exact=True).locator("visible=true").click()
        await expect(page.get_by_role("row", name="mail")).to_contain_text("looking")
        await page.get_by_role("row", name="mail").get_by_role("button", name="Resume").click()
        await expect(page.get_by_role("status")).to_contain_text("mail is resumed")
        assert wrong == []


@pytest.mark.prove
@pytest.mark.long
async def test_every_page_and_action(visiting: Visiting) -> None:
    """What the night did not need: schedules, endpoints, single jobs, and hostile ones."""
    async with visiting(
        ["operate"], color_scheme="dark", viewport={"width": 1180, "height": 760}
    ) as (page, api, wrong):
        for name in PAGES:
            if name not in {"queues", "dead"}:
                await page.goto(f"/console/{name}")
                await check(page, f"{name or 'overview'}-dark")
        await page.goto("/console/schedules")
        await page.get_by_role("link", name="nightly report").first.click()
        await check(page, "schedule")
        await page.get_by_text("Pause…").click()
        await page.get_by_placeholder("why, for others").fill("not tonight")
        await page.get_by_role("button", name="Pause", exact=True).click()
        await expect(page.locator(".why")).to_contain_text("not tonight")
        await page.get_by_role("button", name="Resume").click()
        await expect(page.get_by_role("status")).to_contain_text("resumed")
        await page.wait_for_load_state()  # its scripts have run
        run_now = page.get_by_role("button", name="Run now")
        assert await page.locator("form", has=run_now).evaluate(SENT_TWICE) == [True, False]
        await page.reload()
        await run_now.click()
        await expect(page.get_by_role("heading", name="report")).to_be_visible()
        await page.get_by_text("Cancel…").click()
        await page.get_by_placeholder("why, for the audit").fill("not needed")
        await page.get_by_role("button", name="Cancel the job").click()
        await expect(page.locator("h1 .state")).to_have_text("cancelled")
        await page.get_by_role("button", name="Redrive").click()
        await expect(page.locator("h1 .state")).to_have_text("queued")
        await page.get_by_role("button", name="Run now").click()
        await expect(page.get_by_role("status")).to_contain_text("may run now")
        await page.goto("/console/endpoints")
        await page.get_by_text("Pause…").click()
        await page.get_by_placeholder("why, for others").fill("they are down")
        await page.get_by_role("button", name="Pause", exact=True).click()
        await page.get_by_role("button", name="Resume").click()
        await expect(page.get_by_text("delivers", exact=True)).to_be_visible()
        await page.goto("/console/jobs?queue=mail&state=queued")
        await page.get_by_role("link", name="Cancel…").click()
        await page.get_by_label("Reason").fill("a test")
        await page.get_by_role("button", name=re.compile(r"Cancel \d+")).click()
        await expect(page.get_by_role("status")).to_contain_text("Cancel: 5 jobs")
        await page.goto("/console/audit")
        await expect(page.locator("tbody")).to_contain_text("a test")

        payload = psycopg.types.json.Jsonb(
            {"html": HOSTILE, "nul": r"\u0000 \x00", "large": "x" * 900_000}
        )
        [(job_id,)] = api.run(
            "select jobq.enqueue(%s, %s, queue => %s)", HOSTILE[:120], payload, HOSTILE[:120]
        )
        [(attempt,)] = api.run("select attempt from jobq.claim_job(%s, %s)", job_id, HOSTILE[:99])
        api.run("select jobq.log(%s, %s, 'ERROR', %s)", job_id, attempt, HOSTILE)
        api.run("select jobq.fail(%s, %s, %s, %s, false)", job_id, attempt, HOSTILE, HOSTILE[:99])
        for path in (f"jobs/{job_id}", "", "queues", "jobs", "dead", "workers"):
            await page.goto(f"/console/{path}")
            await expect(page).not_to_have_title("owned")
            if str(job_id) in path:
                await expect(page.get_by_label("Payload")).to_contain_text(r"\u0000")
                await expect(page.get_by_label("Payload")).to_contain_text("<script>")
        assert wrong == []


SENT_TWICE = """
    (form) => [1, 2].map(() =>
        form.dispatchEvent(new Event("submit", { bubbles: true, cancelable: true })))
"""
CUT = """
    [...document.querySelectorAll(".node div")].filter((text) =>
        text.scrollWidth > text.clientWidth).map((text) => text.textContent)
"""
OUTSIDE = """
    [...document.querySelectorAll(".node")].flatMap((node) => {
        const room = node.querySelector("rect").getBoundingClientRect();
        return [...node.querySelectorAll("div")].filter((text) => {
            const box = text.getBoundingClientRect();
            return box.right > room.right || box.bottom > room.bottom;
        }).map((text) => text.textContent);
    })
"""


@pytest.mark.prove
async def test_keys_and_graphs(visiting: Visiting) -> None:
    """Who holds a key; it is held and released. A graph is drawn, and leads to its jobs."""
    async with visiting(["operate"], viewport={"width": 1180, "height": 760}) as (
        page, api, wrong,
    ):  # fmt: skip
        await page.goto("/console/queues")
        await page.get_by_role("link", name="billing").click()
        await check(page, "queue")
        holder = page.get_by_role("row", name="customer-1")
        await expect(holder).to_contain_text("biller:2")
        await expect(page.locator(".rows li", has_text="customer-3")).to_contain_text("unpaid")
        await holder.get_by_role("link", name="customer-1").click()
        key = page.locator(".key")
        await expect(key).to_contain_text("in use")
        await key.get_by_text("Hold…").click()
        await key.get_by_label("For").select_option("until it is released")
        await key.get_by_label("Reason").fill("they asked")
        await key.get_by_role("button", name="Hold the key").click()
        await expect(key).to_contain_text("until it is released: they asked")
        await key.get_by_role("button", name="Release").click()
        await expect(page.get_by_role("status")).to_contain_text("customer-1 is released")
        done = api.run("select action from jobq.audit where subject = 'billing customer-1'")
        assert sorted(done) == [("hold_key",), ("release_key",)]

        [(job_id,)] = api.run("select job_id from jobq_private.node where name = 'join'")
        await page.goto(f"/console/jobs/{job_id}")
        await check(page, "graph")
        drawn = page.locator(".graph svg")
        await expect(drawn.locator("a.node")).to_have_count(6)
        await expect(drawn.locator("path.arrow")).to_have_count(7)
        boxes = [await box.bounding_box() for box in await drawn.locator("a.node").all()]
        places = {(round(box["x"]), round(box["y"])) for box in boxes if box}
        assert len(places) == 6
        api.run("update jobq_private.node set name = repeat('W', 40) where name = 'orders'")
        api.run("update jobq_private.node set name = repeat('界', 40) where name = 'customers'")
        await page.reload()
        for name in ("W" * 40, "界" * 40):
            await expect(drawn.get_by_text(name, exact=True)).to_be_visible()
        assert sorted(await page.evaluate(CUT)) == ["W" * 40, "界" * 40]
        assert await page.evaluate(OUTSIDE) == []
        await page.goto("/console/")
        blocked = page.locator(".tile", has_text="Blocked")
        await expect(blocked).to_contain_text("4wait for other jobs")
        await blocked.get_by_role("link").click()
        await expect(page.get_by_role("row", name="blocked")).to_have_count(4)
        await page.goto(f"/console/jobs/{job_id}")
        await drawn.get_by_role("link", name="invoice EU").click()
        await expect(page.get_by_role("heading", name="invoice")).to_be_visible()
        await page.get_by_text("Cancel the graph…").click()
        await page.get_by_role("button", name="Cancel all jobs of the graph").click()
        await expect(page.get_by_role("status")).to_contain_text("6 jobs")
        await expect(drawn.locator("a.node.s-cancelled")).to_have_count(6)
        api.run("select jobq.redrive(job_id) from jobq_private.node where name ~ '^WWW'")
        api.run(
            "select jobq.fail(c.job_id, c.attempt, 'gone', retryable => false)"
            " from jobq.claim('{flow}', 'w', 1) as c"
        )
        await page.get_by_role("button", name="Redrive what failed").click()
        await expect(page.get_by_role("status")).to_contain_text("Redriven")
        await expect(drawn.locator("a.node.s-queued")).not_to_have_count(0)
        assert wrong == []


CROWDED = """
    [...document.querySelectorAll(".chart")].flatMap((chart) => {
        const texts = [...chart.querySelectorAll("text")].filter((e) => e.checkVisibility());
        const boxes = texts.map((e) => [e.textContent, e.getBoundingClientRect()]);
        const room = chart.getBoundingClientRect();
        return boxes.filter(([, a], n) => a.height < 12 || a.left < room.left
            || a.right > room.right || boxes.slice(n + 1).some(([, b]) => a.left < b.right + 4
                && b.left < a.right + 4 && a.top < b.bottom && b.top < a.bottom))
            .map(([words]) => words);
    })
"""


async def check_charts(page: Page) -> None:
    """See that what is written beside charts can be read: large enough, apart, inside."""
    if await page.locator(".chart").count():
        assert await page.locator(".chart text").count() > 3
        assert await page.evaluate(CROWDED) == []


@pytest.mark.prove
async def test_without_javascript_on_a_narrow_screen(visiting: Visiting) -> None:
    async with visiting(
        ["operate"], java_script_enabled=False, viewport={"width": 360, "height": 740}
    ) as (page, api, _wrong):
        for name in (*PAGES, "queue?name=mail"):
            await page.goto(f"/console/{name}")
            assert await page.evaluate("document.documentElement.scrollWidth") <= 360, name
            await check_charts(page)
            if not name:
                await page.locator(".headline .tabs").first.evaluate("e => e.scrollIntoView()")
            await picture(page, f"{name or 'overview'}-narrow")
        await page.goto("/console/queues")
        await page.get_by_role("row", name="sms").get_by_role("button", name="Resume").click()
        await expect(page.get_by_role("status")).to_contain_text("sms is resumed")
        await page.goto("/console/jobs")
        await page.get_by_label("Error code").fill("RECIPIENT_REFUSED")
        await page.locator("label", has_text="dead").click()
        await page.get_by_role("button", name="Show").click()
        assert "error=RECIPIENT_REFUSED" in urlsplit(page.url).query
        await page.get_by_role("link", name="Redrive…").click()
        await page.get_by_role("button", name="Redrive 12").click()
        await expect(page.get_by_role("status")).to_contain_text("Redrive: 12 jobs")
        assert api.run("select count(*) from jobq.job where state = 'dead'") == [(0,)]
        await page.get_by_role("button", name="Sign out").click()
        await expect(page.get_by_label("API key")).to_be_visible()


# Where the focus has gone: what it was on, whether it could be seen there.
FOCUS = """
    window.stops = [];
    document.addEventListener("focusin", ({target}) => {
        const shown = target.matches(".chip input") ? target.nextElementSibling : target;
        const style = getComputedStyle(shown), box = shown.getBoundingClientRect();
        const isSeen = style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 1
            && box.width > 1 && box.bottom > 0 && box.top < innerHeight;
        const says = target.innerText || target.textContent || target.name || "";
        const name = target.getAttribute("aria-label") || says;
        window.stops.push([target, name.trim(), isSeen]);
    });
"""
WANTED = """
    [...document.querySelectorAll("a[href], button, input, select, summary, [tabindex='0']")]
        .filter((e) => e.type !== "hidden" && e.checkVisibility() && !e.matches(".skip"))
        .filter((e) => !stops.some(([stop]) => stop === e)).map((e) => e.outerHTML.slice(0, 150))
"""


async def tab_to(page: Page, name: str, within: str = "") -> None:
    """Press Tab until the focus is on what has this name, in a row or card with these words."""
    for _ in range(150):
        await page.keyboard.press("Tab")
        found = await page.evaluate(
            """([name, within]) => {
                const e = document.activeElement;
                const words = e.getAttribute("aria-label") || e.innerText || e.placeholder || "";
                const row = e.closest("tr, li, .tile")?.innerText ?? "";
                return words.trim() === name && row.includes(within);
            }""",
            [name, within],
        )
        if found:
            return
    pytest.fail(f"the focus never comes to {name}")


@pytest.mark.prove
@pytest.mark.long
async def test_the_keyboard_leads_everywhere(
    visiting: Visiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each page's links, buttons and fields are reached by Tab, and the focus is seen."""
    monkeypatch.setattr("jobq_console.jobs.PAGE", 5)  # rows are alike
    async with visiting(["operate"], viewport={"width": 1180, "height": 760}) as (
        page, api, wrong,
    ):  # fmt: skip
        [(job_id,)] = api.run("select job_id from jobq_private.node where name = 'join'")
        [(schedule_id,)] = api.run("select schedule_id from jobq_private.schedule limit 1")
        others = (
            f"jobs/{job_id}", f"schedules/{schedule_id}", "queue?name=billing",
            "jobs/bulk?action=redrive&state=dead",
        )  # fmt: skip
        for path in (*PAGES, *others):
            await page.goto(f"/console/{path}")
            await page.evaluate(FOCUS)
            for _ in await page.evaluate(WANTED):
                await page.keyboard.press("Tab")
            for _ in range(20):  # for what is a stop besides, such as the link to the content
                if not await page.evaluate(WANTED):
                    break
                await page.keyboard.press("Tab")
            stops = await page.evaluate("stops.map(([, name, isSeen]) => [name, isSeen])")
            assert stops[0][0] == "Skip to content", path
            assert [name for name, is_seen in stops if not is_seen] == [], path
            assert await page.evaluate(WANTED) == [], path
        assert wrong == []


@pytest.mark.prove
@pytest.mark.long
async def test_an_operator_needs_no_mouse(visiting: Visiting) -> None:
    """In by a key; what is dead is redriven, a queue is paused; what follows keeps the focus."""
    async with visiting(["operate"], viewport={"width": 1180, "height": 760}) as (
        page, api, wrong,
    ):  # fmt: skip
        await tab_to(page, "Sign out")
        await page.keyboard.press("Enter")
        await expect(page.get_by_label("API key")).to_be_focused()
        key = api.key(["operate"])["authorization"].removeprefix("Bearer ")
        await page.keyboard.type(key)
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", name="Overview")).to_be_visible()
        await page.keyboard.press("Tab")
        await expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(page.locator("main")).to_be_focused()
        await tab_to(page, "12", "Dead")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", name="Dead jobs")).to_be_visible()
        await tab_to(page, "Redrive…", "RECIPIENT_REFUSED")
        await page.keyboard.press("Enter")
        await expect(page.locator(".count")).to_contain_text("12 jobs fit")
        await tab_to(page, "Redrive 12")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("status")).to_contain_text("Redrive: 12 jobs")

        await tab_to(page, "Queues")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", name="Queues")).to_be_visible()
        await tab_to(page, "Pause…", "mail")
        await page.keyboard.press("Enter")
        await page.keyboard.press("Tab")
        await page.keyboard.press("Escape")
        summary = page.get_by_role("row", name="mail").locator("summary")
        await expect(summary).to_be_focused()
        await page.keyboard.press("Enter")
        await page.keyboard.press("Tab")
        await page.keyboard.type("by hand")
        await page.keyboard.press("Enter")
        row = page.get_by_role("row", name="mail")
        await expect(row).to_contain_text("by hand")
        await tab_to(page, "Resume", "mail")
        api.run("select jobq.enqueue('later', queue => 'mail') from generate_series(1, 9)")
        await expect(row.locator("td").first).to_have_text("26")
        await expect(row.get_by_role("button", name="Resume")).to_be_focused()
        assert wrong == []


@pytest.mark.prove
async def test_a_reader_sees_no_button(visiting: Visiting) -> None:
    async with visiting(["read"]) as (page, api, wrong):
        [(job_id,)] = api.run("select job_id from jobq.job where state = 'queued' limit 1")
        for path in (*PAGES[:-1], f"jobs/{job_id}"):
            await page.goto(f"/console/{path}")
            buttons = page.locator("main button:visible:not(.sort), main summary.button")
            names = await buttons.all_inner_texts()
            assert set(names) <= {"Show", "Open", "Find", "Copy"}, path
        await expect(page.get_by_role("link", name="Audit")).to_have_count(0)
        assert wrong == []


@pytest.mark.long
async def test_a_question_is_answered_by_a_button_and_by_a_link(
    visiting: Visiting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JOBQ_SECRET_KEYS", b64encode(bytes(32)).decode())
    async with visiting(["read", "operate"]) as (page, api, wrong):
        await page.get_by_role("link", name="Approvals").click()
        await expect(page.get_by_text("The customer waits.")).to_be_visible()
        await page.get_by_text("Answer…").click()
        await check(page, "approvals")
        await page.get_by_role("button", name="Approve").click()  # refused: cents are missing
        await expect(page.get_by_text("The customer waits.")).to_be_visible()
        await page.get_by_label("Cents").fill("250")
        await page.get_by_label("How").select_option("voucher")
        await page.get_by_label("Note").fill("<b>sorry</b>")
        await page.get_by_label("More").fill('{"points": [1, 2]}')
        await page.get_by_label("Reason").fill("a regular customer")
        await page.get_by_role("button", name="Approve").click()
        await expect(page.get_by_text("It is approved.")).to_be_visible()
        await expect(page.get_by_text("No job waits for a person.")).to_be_visible()
        [(job_id, payload)] = api.run("select job_id, payload from jobq_private.event")
        assert payload["data"] == {
            "cents": 250, "how": "voucher", "tell": True, "note": "<b>sorry</b>",
            "more": {"points": [1, 2]},
        }  # fmt: skip
        assert payload["by"].startswith("API key ")
        await page.goto(f"/console/audit?subject={job_id}")
        await expect(page.get_by_text("refund: a regular customer")).to_be_visible()

        # The next question is the manager's, who has no key, and rejects on the page of the link.
        api.run("select from jobq.claim('{agents}', 'agent:7', 1)")
        [(attempt,)] = api.run("select attempt from jobq.job where job_id = %s", job_id)
        for name in ("refund", "sure"):
            api.run("select jobq.ask(%s, %s, %s, 'Really?')", job_id, attempt, name)
        await page.goto(f"/console/jobs/{job_id}")
        await expect(page.get_by_role("heading", name="Waits for a person")).to_be_visible()
        await check(page, "a job that asks")
        ring = Keyring([bytes(32)])
        link = approval_link("", job_id, "sure", to="the boss", valid_for=HOUR, keyring=ring)
        await page.get_by_role("button", name="Sign out").click()
        await page.goto(link)
        await expect(page.get_by_text("Really?")).to_be_visible()
        await check(page, "approval")
        await page.get_by_role("button", name="Reject").click()
        await expect(page.get_by_text("You have rejected it.")).to_be_visible()
        [(who,)] = api.run("select acting_for from jobq.audit where action = 'reject'")
        assert who == "link to the boss"
        assert wrong == []


@contextmanager
def outage(database: str) -> Iterator[None]:
    """The database lets nobody in for a while, and sends away who is there."""
    elsewhere = make_conninfo(database, dbname="postgres")
    name = conninfo_to_dict(database)["dbname"]
    with psycopg.connect(elsewhere, autocommit=True) as admin:
        admin.execute(f"alter database {name} allow_connections false")
        try:
            admin.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s", [name]
            )
            yield
        finally:
            admin.execute(f"alter database {name} allow_connections true")


async def test_in_an_outage_a_page_stays_says_how_old_it_is_and_goes_on(
    visiting: Visiting, database: str
) -> None:
    async with visiting(["read"]) as (page, api, _):
        await expect(page.locator("[data-live-mark]")).to_have_text("live")
        await page.evaluate("window.isSame = true")
        waited = await page.locator(".tile").first.inner_text()
        old = re.compile(r"What is shown is of \d\d:\d\d:\d\d UTC: the database does not answer\.")
        with outage(database):
            await expect(page.get_by_role("alert")).to_have_text(old)
            await expect(page.locator("[data-live-mark]")).to_be_hidden()
            async with page.expect_response(lambda answer: answer.status == 503):
                pass  # one of its looks is answered so, and does not replace it
            await expect(page.get_by_role("heading", name="Overview")).to_be_visible()
            await expect(page.get_by_role("alert")).to_have_text(old)
        api.run("select jobq.enqueue('k', queue => 'late') from generate_series(1, 9)")
        await expect(page.locator("[data-live-mark]")).to_be_visible()
        await expect(page.get_by_role("alert")).to_be_hidden()
        await expect(page.locator(".tile").first).not_to_have_text(waited)
        assert await page.evaluate("window.isSame")


@pytest.mark.prove
@pytest.mark.long
async def test_long_names_wrap_and_a_slash_looks_for_a_job(visiting: Visiting) -> None:
    """A name of 128 letters widens no table, whatever the fonts; / leads to the field for an id."""
    async with visiting(["operate"], viewport={"width": 1180, "height": 760}) as (
        page, api, wrong,
    ):  # fmt: skip
        api.run(
            "select jobq.enqueue(repeat('k', 128), queue => repeat('q', 128)),"
            " jobq.pause_queue(repeat('q', 128), repeat('r', 200)),"
            " jobq.put_endpoint(repeat('e', 120), 'HTTP', jsonb_build_object('url',"
            " 'https://api.example/' || repeat('p', 200))),"
            " jobq.create_schedule(repeat('s', 120), repeat('k', 128), '0 3 * * *',"
            " time_zone => 'America/Argentina/ComodRivadavia')"
        )
        api.run(
            "select jobq.heartbeat(repeat('w', 120), '{}', '{}', array_agg(repeat('q', n)))"
            " from generate_series(111, 128) as n"
        )
        for path in ("jobs", "queues", "schedules", "workers", "endpoints", "audit"):
            await page.goto(f"/console/{path}")
            for style in ("", WIDE_FONT):
                table, room = await page.locator("table").evaluate(WIDTHS, style)
                assert table <= room, (path, style)
            if path == "workers":
                await expect(page.locator("tbody tr", has_text="w" * 99)).to_contain_text(
                    "q… and 6 more"
                )
        await page.keyboard.press("/")
        await expect(page.locator("#find")).to_be_focused()
        await page.goto("/console/jobs")
        await page.keyboard.press("/")
        await expect(page.locator("#find")).to_be_focused()

        # What a page holds back it says; a log follows its end from its first line on.
        [(job_id, attempt)] = api.run(
            "select job_id, attempt from jobq.job where state = 'running' and queue = 'mail'"
            " limit 1"
        )
        await page.goto(f"/console/jobs/{job_id}")
        mark = page.locator("[data-live-mark]")
        await expect(mark).to_have_text("live")
        await page.get_by_text("Cancel…").click()
        await expect(page.get_by_placeholder("why, for the audit")).to_be_visible()
        api.run(
            "select jobq.log(%s, %s, 'INFO', 'line ' || n || repeat(E'\\n', 9))"
            " from generate_series(1, 60) as n", job_id, attempt,
        )  # fmt: skip
        await expect(mark).to_have_text("waits")
        await page.keyboard.press("Escape")
        log = page.locator(".log")
        await expect(log).to_contain_text("line 60")
        await expect(mark).to_have_text("live")
        at_end = "l => l.scrollTop + l.clientHeight >= l.scrollHeight - 24"
        assert await log.evaluate(at_end)
        api.run("select jobq.log(%s, %s, 'INFO', 'the last line')", job_id, attempt)
        await expect(log).to_contain_text("the last line")
        assert await log.evaluate(at_end)
        # The server ends the session: the page leads to the entrance.
        api.run("delete from jobq_private.api_key")
        await expect(page.get_by_label("API key")).to_be_visible()
        assert [words for words in wrong if "401" not in words] == []


@pytest.mark.prove
async def test_tables_sort_rows_are_selected_and_folds_stay_open(visiting: Visiting) -> None:
    async with visiting(["read", "operate"]) as (page, api, _):
        api.run("select jobq.enqueue('k', queue => 'q' || n) from generate_series(1, 3) as n")
        api.run("select jobq.enqueue('k', queue => 'q2') from generate_series(1, 511)")
        await page.goto("/console/queues")
        heads = page.locator("tbody th")
        await page.get_by_role("button", name="Waiting").click()
        await expect(heads.first).to_have_text("q2")
        api.run("select jobq.enqueue('k', queue => 'q3') from generate_series(1, 1020)")
        await expect(heads.first).to_have_text("q3")  # the order outlives a refresh
        await page.goto("/console/jobs?queue=q1")
        await page.locator("input[name=ids]").first.check()
        await page.locator("#selected").get_by_role("button", name="Cancel…").click()
        await expect(page.locator("main")).to_contain_text("1 job")
        [(job_id,)] = api.run("select jobq.enqueue('broken', queue => 'b')")
        api.run(f"select from jobq.claim_job('{job_id}', 'w')")
        api.run(f"""select jobq.fail('{job_id}', 1, 'no',
            retry_in => '0 s', details => '{{"traceback": "File a"}}')""")
        await page.goto(f"/console/jobs/{job_id}")
        await page.get_by_text("Details").click()
        await expect(page.get_by_text("File a")).to_be_visible()
        api.run(f"select from jobq.claim_job('{job_id}', 'w')")
        await expect(page.locator(".headline .state")).to_have_text("running")
        await expect(page.get_by_text("File a")).to_be_visible()
