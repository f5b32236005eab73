// What pages do beyond forms and links: follow what happens, copy, go on with long work.
(() => {
  "use strict";
  const $ = (selector) => document.querySelector(selector);

  // Follow: the server says when something has changed, and the page looks again.
  let source = null;
  let isStale = false;
  let restore = () => {};
  let isPressed = false; // what is pressed must not be replaced before it is let go
  const live = () => $("#live[data-live]");
  const isBusy = () => {
    const page = live();
    if (!page || isPressed) return true;
    if (page.querySelector("details.ask[open]")) return true;
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
  const kept = () => {
    const focused = live().contains(document.activeElement) ? named(document.activeElement) : null;
    const folds = new Map([...document.querySelectorAll("#live details:not(.ask)")].map((d) => [fold(d), d.open]));
    const places = lists().map((l) => [l.scrollLeft, l.scrollTop, l.scrollTop + l.clientHeight >= l.scrollHeight - 4]);
    return () => {
      for (const details of document.querySelectorAll("#live details:not(.ask)")) {
        details.open = folds.get(fold(details)) ?? details.open;
      }
      lists().forEach((list, n) => {
        const [left, top, isAtEnd] = places[n] ?? [0, 0, false];
        list.scrollLeft = left;
        list.scrollTop = isAtEnd && list.matches(".log") ? list.scrollHeight : top;
      });
      const again = focused && [...document.querySelectorAll("#live a, #live button, #live summary, #live [tabindex]")].find((e) => named(e) === focused);
      if (again) again.focus({ preventScroll: true });
    };
  };
  const look = () => {
    if (document.hidden || isBusy()) {
      isStale = true;
      return;
    }
    isStale = false;
    const page = live();
    window.htmx
      .ajax("GET", page.dataset.live, { target: "#live", select: "#live", swap: "outerHTML" })
      .then(() => restore(), () => { isStale = true; });
  };
  const mark = (isLive) => {
    const shown = $("[data-live-mark]");
    if (shown) shown.hidden = !isLive;
  };
  const follow = () => {
    const url = document.body.dataset.stream;
    if (!url || source || !live() || document.hidden) return;
    source = new EventSource(url);
    source.addEventListener("open", () => mark(true));
    source.addEventListener("error", () => mark(false));
    source.addEventListener("changed", look);
  };
  const rest = () => {
    if (source) source.close();
    source = null;
    mark(false);
  };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) rest();
    else { follow(); look(); }
  });
  window.addEventListener("pagehide", rest);
  setInterval(() => { if (isStale) look(); }, 2000);
  document.addEventListener("htmx:afterSwap", dress);
  document.addEventListener("htmx:beforeSwap", (event) => {
    const isKept = isBusy();
    restore = isKept ? () => {} : kept();
    if (!isKept) return;
    event.detail.shouldSwap = false;
    isStale = true;
  });
  document.addEventListener("pointerdown", () => { isPressed = true; }, true);
  for (const end of ["pointerup", "pointercancel"]) {
    document.addEventListener(end, () => setTimeout(() => { isPressed = false; }, 250), true);
  }
  document.addEventListener("submit", () => { isPressed = true; setTimeout(() => { isPressed = false; }, 5000); });
  document.addEventListener("htmx:responseError", (event) => {
    if (event.detail.xhr.status === 401) location.reload();
  });

  // Copy, where the browser lets a page do so.
  function dress() {
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
      else location.assign("/console/jobs#find");
    }
  });

  dress();
  follow();
  if (location.hash === "#find" && $("#find")) $("#find").focus();
  for (const log of document.querySelectorAll(".log")) log.scrollTop = log.scrollHeight;
  const more = $("form[data-continue]");
  if (more) setTimeout(() => more.requestSubmit(), 400);
})();
