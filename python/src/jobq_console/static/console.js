// What pages do beyond forms and links: follow what happens, copy, go on with long work.
(() => {
  "use strict";
  const $ = (selector) => document.querySelector(selector);

  // Follow: ask for a number every two seconds, and look again when it is another.
  let pulse = null;
  let isAsking = false;
  let isStale = false;
  let restore = () => {};
  let seen = new Date(); // when what is shown was asked for
  let trouble = ""; // why nothing newer is there
  let isPressed = false; // what is pressed must not be replaced before it is let go
  let letGo = 0;
  const press = (longest) => {
    isPressed = true;
    clearTimeout(letGo);
    letGo = setTimeout(() => { isPressed = false; }, longest);
  };
  const live = () => $("#live[data-live]");
  const isBusy = () => {
    const page = live();
    if (!page || isPressed) return true;
    if (page.querySelector("details.ask[open], input[name=ids]:checked")) return true;
    const active = document.activeElement;
    if (active && page.contains(active) && active.matches("input, textarea, select")) return true;
    const selection = document.getSelection();
    return Boolean(selection && !selection.isCollapsed && page.contains(selection.anchorNode));
  };
  const fold = (details) => details.dataset.fold || details.querySelector("summary").textContent;
  // What is looked at again keeps what has the focus, what is unfolded, and where lists stand.
  const row = (element) => element.closest("tr, li, section, dl")?.querySelector("th, h2, a")?.textContent ?? "";
  const named = (element) => {
    const says = element.matches("a, button, summary") ? [element.textContent, row(element)] : [];
    return [element.tagName, element.getAttribute("href"), element.getAttribute("aria-label"), element.closest("form")?.action, ...says].join("|");
  };
  const lists = () => [...document.querySelectorAll("#live .scroll, #live .json, #live .log")];
  const isAtEnd = (list) => list.scrollTop + list.clientHeight >= list.scrollHeight - 24;
  const kept = () => {
    const focused = live().contains(document.activeElement) ? named(document.activeElement) : null;
    const folds = new Map([...document.querySelectorAll("#live details:not(.ask)")].map((d) => [fold(d), d.open]));
    const list = (l) => l.getAttribute("aria-label") ?? l.id;
    const places = new Map(lists().map((l) => [list(l), [l.scrollLeft, l.scrollTop, isAtEnd(l)]]));
    return () => {
      order();
      for (const details of document.querySelectorAll("#live details:not(.ask)")) {
        details.open = folds.get(fold(details)) ?? details.open;
      }
      for (const l of lists()) {
        const [left, top, wasAtEnd] = places.get(list(l)) ?? [0, 0, true];
        l.scrollLeft = left;
        l.scrollTop = wasAtEnd && l.matches(".log") ? l.scrollHeight : top;
      }
      const again = focused && [...document.querySelectorAll("#live a, #live button, #live summary, #live [tabindex]")].find((e) => named(e) === focused);
      if (again) again.focus({ preventScroll: true });
    };
  };
  const stale = (isNow) => {
    isStale = isNow;
    mark();
  };
  const look = () => {
    if (document.hidden || isBusy()) return stale(true);
    stale(false);
    const page = live();
    window.htmx
      .ajax("GET", page.dataset.live, { target: "#live", select: "#live", swap: "outerHTML" })
      .then(() => restore(), () => {});
  };
  const troubled = (why) => {
    trouble = live() ? why : "";
    mark();
  };
  // What the mark says: that the page follows, or that there is news which it holds back. In
  // trouble a notice says instead how old is what is shown.
  const mark = () => {
    const notice = $("[data-old]");
    if (notice) {
      const says = trouble && `What is shown is of ${seen.toISOString().slice(11, 19)} UTC: ${trouble} This page goes on by itself.`;
      notice.hidden = !trouble;
      if (notice.textContent !== says) notice.textContent = says;
    }
    const shown = $("[data-live-mark]");
    if (!shown) return;
    shown.hidden = Boolean(trouble) || pulse === null;
    shown.classList.toggle("waits", isStale);
    shown.textContent = isStale ? "waits" : "live";
    shown.title = isStale
      ? "There is news. It is shown when no box is open, no field is in use and no text is selected."
      : "This page follows what happens";
  };
  const follow = async () => {
    const url = document.body.dataset.pulse;
    if (!url || !live() || document.hidden || isAsking) return;
    isAsking = true;
    try {
      const answer = await fetch(url, { redirect: "manual", signal: AbortSignal.timeout(15000) });
      // Who is silent, or that the session has ended, the page itself finds out.
      const now = answer.ok ? await answer.text() : null;
      const isNews = now === null || now !== pulse || trouble || new Date() - seen > 15000;
      pulse = now ?? pulse;
      if (isNews) look();
    } catch {
      troubled("the console does not answer.");
    } finally {
      isAsking = false;
      mark();
    }
  };
  document.addEventListener("visibilitychange", () => { if (!document.hidden) { follow(); look(); } });
  setInterval(follow, 2000);
  setInterval(() => { if (isStale && !trouble) look(); }, 2000);
  document.addEventListener("htmx:afterSwap", dress);
  document.addEventListener("htmx:beforeSwap", (event) => {
    if (isRefused(event.detail.xhr)) return;
    seen = new Date();
    troubled("");
    if (!event.detail.serverResponse.includes('id="live"')) {
      event.detail.shouldSwap = false;
      location.reload();
      return;
    }
    const isKept = isBusy();
    restore = isKept ? () => {} : kept();
    if (!isKept) return;
    event.detail.shouldSwap = false;
    stale(true);
  });
  document.addEventListener("pointerdown", () => press(5000), true);
  for (const end of ["pointerup", "pointercancel"]) document.addEventListener(end, () => press(250), true);
  document.addEventListener("submit", () => press(5000));
  // What only failed for now: the page stays, and says so.
  const isRefused = (xhr) => xhr.status >= 500 || xhr.status === 429;
  document.addEventListener("htmx:responseError", (event) => {
    const { xhr } = event.detail;
    if (!isRefused(xhr)) return;
    const page = new DOMParser().parseFromString(xhr.responseText, "text/html");
    const problem = page.querySelector(".problem h1")?.textContent ?? `the answer was ${xhr.status}`;
    troubled(`${problem[0].toLowerCase()}${problem.slice(1).replace(/[.]$/, "")}.`);
  });
  for (const lost of ["sendError", "timeout"]) {
    document.addEventListener(`htmx:${lost}`, () => troubled("the console does not answer."));
  }

  // Sort: a press on a head of a column orders the rows of its table, also of those that come.
  const chosen = new Map(); // by the table's name: the column, and whether the largest come first
  const tableName = (table) => table.closest("[aria-label]")?.getAttribute("aria-label") ?? "";
  const valueOf = (cell) => {
    if (!cell) return "";
    const text = cell.dataset.value ?? cell.querySelector("time")?.dateTime ?? cell.textContent.trim();
    const number = Number(text.replace(/[,+%]|\s.*$/g, ""));
    return text !== "" && !Number.isNaN(number) ? number : text.toLowerCase();
  };
  const before = (a, b) => typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? 1 : -1;
  function order() {
    for (const table of document.querySelectorAll("table[data-sort]")) {
      const heads = [...table.tHead.rows[0].cells];
      for (const [n, head] of heads.entries()) {
        if (head.scope !== "col" || head.querySelector("button, .unseen")) continue;
        const button = document.createElement("button");
        button.className = "sort";
        button.append(...head.childNodes);
        head.append(button);
        button.addEventListener("click", () => {
          const [column, isDown] = chosen.get(tableName(table)) ?? [-1, false];
          chosen.set(tableName(table), [n, column === n ? !isDown : head.classList.contains("n")]);
          order();
        });
      }
      const [column, isDown] = chosen.get(tableName(table)) ?? [-1, false];
      for (const [n, head] of heads.entries()) {
        if (n === column) head.setAttribute("aria-sort", isDown ? "descending" : "ascending");
        else head.removeAttribute("aria-sort");
      }
      if (column < 0) continue;
      const rows = [...table.tBodies[0].rows].map((row) => [valueOf(row.cells[column]), row]);
      rows.sort(([a], [b]) => (isDown ? before(b, a) : before(a, b)));
      table.tBodies[0].append(...rows.map(([, row]) => row));
    }
  }

  // A form is sent once, however often its button is pressed.
  const sent = new WeakSet();
  document.addEventListener("submit", (event) => {
    if (event.target.method !== "post") return;
    if (sent.has(event.target)) event.preventDefault();
    sent.add(event.target);
  });
  window.addEventListener("pageshow", (event) => {
    if (event.persisted) location.reload(); // what was sent from it is done
  });

  // Streams: what a job writes is shown as it comes; a later attempt starts an empty box.
  const sources = new Map();
  const read = (box) => {
    const source = new EventSource(box.dataset.stream);
    source.addEventListener("chunk", (event) => {
      const { generation, chunk } = JSON.parse(event.data);
      const wasAtEnd = isAtEnd(box);
      if (box.dataset.generation !== String(generation)) box.textContent = "";
      box.dataset.generation = generation;
      box.append(typeof chunk === "string" ? chunk : `${JSON.stringify(chunk)}\n`);
      if (wasAtEnd) box.scrollTop = box.scrollHeight;
    });
    source.addEventListener("end", () => source.close());
    return source;
  };

  // Copy, where the browser lets a page do so.
  function dress() {
    for (const [box, source] of sources) {
      if (box.isConnected) continue;
      source.close();
      sources.delete(box);
    }
    for (const box of document.querySelectorAll("[data-stream]")) {
      if (!sources.has(box)) sources.set(box, read(box));
    }
    if (!navigator.clipboard) return;
    for (const button of document.querySelectorAll("[data-copy], [data-copy-from]")) button.hidden = false;
  }
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copy], [data-copy-from]");
    if (button) {
      const text = button.dataset.copy || document.getElementById(button.dataset.copyFrom).textContent;
      navigator.clipboard.writeText(text).then(() => {
        const said = button.textContent;
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = said; }, 1500);
      });
    }
    for (const open of document.querySelectorAll("details.ask[open]")) {
      if (!open.contains(event.target)) open.open = false;
    }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      for (const open of document.querySelectorAll("details.ask[open]")) {
        if (open.contains(document.activeElement)) open.querySelector("summary").focus();
        open.open = false;
      }
    }
    if (event.key === "/" && !event.target.matches("input, textarea, select") && $(".top")) {
      event.preventDefault();
      if ($("#find")) $("#find").focus();
      else location.assign(`${document.body.dataset.base}/jobs#find`);
    }
  });

  dress();
  order();
  follow();
  if (location.hash === "#find" && $("#find")) $("#find").focus();
  for (const log of document.querySelectorAll(".log")) log.scrollTop = log.scrollHeight;
  const more = $("form[data-continue]");
  if (more) setTimeout(() => more.requestSubmit(), 400);
})();
