// What pages do beyond forms and links: follow what happens, copy, go on with long work.
(() => {
  "use strict";
  const $ = (selector) => document.querySelector(selector);

  // Follow: the server says when something has changed, and the page looks again.
  let source = null;
  let isStale = false;
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
  const look = () => {
    if (document.hidden || isBusy()) {
      isStale = true;
      return;
    }
    isStale = false;
    const page = live();
    const folds = new Map([...page.querySelectorAll("details:not(.ask)")].map((d) => [fold(d), d.open]));
    const focused = page.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    window.htmx
      .ajax("GET", page.dataset.live, { target: "#live", select: "#live", swap: "outerHTML" })
      .then(() => {
        for (const details of document.querySelectorAll("#live details:not(.ask)")) {
          details.open = folds.get(fold(details)) ?? details.open;
        }
        const again = focused && [...document.querySelectorAll("#live a")].find((a) => a.getAttribute("href") === focused);
        if (again) again.focus({ preventScroll: true });
      }, () => { isStale = true; });
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
    if (!isBusy()) return;
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
    if (event.key === "Escape") for (const open of document.querySelectorAll("details.ask[open]")) open.open = false;
    if (event.key === "/" && !event.target.matches("input, textarea, select") && $("input[name=id]")) {
      event.preventDefault();
      $("input[name=id]").focus();
    }
  });

  dress();
  follow();
  const more = $("form[data-continue]");
  if (more) setTimeout(() => more.requestSubmit(), 400);
})();
