/* The pages of a server: the live page follows what runs; fields by keyboard. */
"use strict";
(() => {
  /** Take the new texts of a part of the page; charts are drawn anew beside, then put in place. */
  function renew(old, fresh) {
    for (const part of fresh.querySelectorAll("[data-part]")) {
      const mine = old.querySelector(`[data-part="${part.dataset.part}"]`);
      if (mine && mine.innerHTML !== part.innerHTML) mine.replaceChildren(...part.childNodes);
    }
    for (const figure of fresh.querySelectorAll("figure.chart")) {
      const mine = old.querySelector(`figure.chart[data-name="${figure.dataset.name}"]:not(.next)`);
      if (mine && mine.view) redraw(mine, figure);
    }
  }

  async function redraw(mine, fresh) {
    if (mine.redrawing) return;
    mine.redrawing = true;
    const next = fresh.cloneNode(true);
    next.classList.add("next");
    next.style.width = `${mine.clientWidth}px`;
    mine.after(next);
    try {
      await underdog.charts.draw(next);
      next.classList.remove("next");
      next.style.width = "";
      mine.replaceWith(next);
      mine.view.finalize();
    } catch (error) {
      next.remove();
      mine.redrawing = false;
      throw error;
    }
  }

  const shape = (root) => [...root.querySelectorAll("[data-key]")].map((section) =>
    [section.dataset.key, ...[...section.querySelectorAll("figure.chart:not(.next)")].map((f) => f.dataset.name)].join("\n")
  ).join("\n\n");

  function take(root, text) {
    const fresh = new DOMParser().parseFromString(text, "text/html").body;
    if (shape(fresh) !== shape(root)) {
      root.replaceChildren(...fresh.childNodes);
      underdog.charts.watch(root);
      return;
    }
    const mine = [...root.querySelectorAll("[data-key]")];
    [...fresh.querySelectorAll("[data-key]")].forEach((section, place) => renew(mine[place], section));
  }

  function follow(root) {
    const beat = document.querySelector(".beat");
    const told = beat.querySelector(".told");
    let stream = null;
    const say = (on, text) => { beat.classList.toggle("on", on); told.textContent = text; };
    const open = () => {
      stream = new EventSource(root.dataset.stream);
      stream.onopen = () => say(true, "Live: once a second");
      stream.onerror = () => say(false, "The server does not answer; trying again");
      stream.onmessage = (event) => take(root, event.data);
    };
    const close = () => {
      if (stream) stream.close();
      stream = null;
      say(false, "Paused");
    };
    // a browser has few connections for all its tabs: one that nobody sees gives its own back
    const begin = () => { if (document.hidden) close(); else if (!stream) open(); };
    document.addEventListener("visibilitychange", begin);
    addEventListener("pagehide", close);
    addEventListener("pageshow", begin);
    begin();
  }

  const live = document.querySelector("#live");
  if (live) follow(live);

  function marked() {
    const fault = document.querySelector("#where-fault");
    if (!fault) return;
    const field = document.querySelector("#where");
    if (fault.textContent.trim()) field.setAttribute("aria-invalid", "true");
    else field.removeAttribute("aria-invalid");
  }
  marked();
  document.addEventListener("htmx:afterSettle", marked);
  document.addEventListener("htmx:oobAfterSwap", marked);

  document.addEventListener("keydown", (event) => {
    const field = document.querySelector(`[data-shortcut="${CSS.escape(event.key)}"]`);
    if (!field || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.closest("input, select, textarea")) return;
    event.preventDefault();
    field.focus();
  });
})();
