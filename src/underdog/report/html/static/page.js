/* What every page does: data of its elements, the scheme of colours, the contents, print. */
"use strict";
document.documentElement.classList.add("scripted"); // what only says what is missing without
const underdog = (() => {
  /** The text of an element that holds it compressed. */
  function unzipped(element) {
    const bytes = Uint8Array.from(atob(element.textContent), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).text();
  }

  /** The value of a data element; large ones are compressed. */
  async function read(element) {
    const plain = element.type === "application/json";
    return JSON.parse(plain ? element.textContent : await unzipped(element));
  }

  /** A new element with a class and a text, which is never taken for markup. */
  function made(name, className = "", text = "") {
    const element = document.createElement(name);
    if (className) element.className = className;
    element.textContent = text;
    return element;
  }

  /** A name in whatever script, that may go on in the next line after a slash. */
  function named(text) {
    const element = made("bdi");
    text.split("/").forEach((part, i) => element.append(...(i ? ["/", made("wbr")] : []), part));
    return element;
  }

  /** A number with so many digits, thousands set apart: as the page was written with. */
  function plain(value, digits = 3) {
    if (!Number.isFinite(value)) return "unknown";
    if (value === 0) return "0";
    const size = Math.floor(Math.log10(Math.abs(value)));
    if (size >= 15 || size < -4) return value.toExponential(digits - 1);
    const places = digits - 1 - size;
    const shown = Math.max(0, places);
    const rounded = places < 0 ? Math.round(value / 10 ** -places) * 10 ** -places : Number(value.toFixed(shown));
    return rounded.toLocaleString("en-US", {
      minimumFractionDigits: shown, maximumFractionDigits: shown,
    });
  }

  /** The same for a table: millions and more by a letter, as in 7.78 M. */
  function compact(value, digits = 3) {
    for (const [scale, letter] of [[1e12, "T"], [1e9, "G"], [1e6, "M"]]) {
      const size = Math.abs(value);
      if (scale * 0.9995 <= size && size < 1e15) return `${plain(value / scale, digits)}\u00a0${letter}`;
    }
    return plain(value, digits);
  }

  function scheme() {
    const button = document.querySelector("button.scheme");
    if (!button) return;
    const root = document.documentElement;
    const system = matchMedia("(prefers-color-scheme: dark)");
    const dark = () => (root.dataset.scheme ? root.dataset.scheme === "dark" : system.matches);
    const say = () => { button.textContent = dark() ? "Light colours" : "Dark colours"; };
    try {
      const kept = localStorage.getItem("underdog-scheme");
      if (kept === "light" || kept === "dark") root.dataset.scheme = kept;
    } catch { /* a browser may keep nothing for a file */ }
    button.addEventListener("click", () => {
      root.dataset.scheme = dark() ? "light" : "dark";
      try {
        localStorage.setItem("underdog-scheme", root.dataset.scheme);
      } catch { /* the choice lasts as long as the page */ }
      say();
    });
    system.addEventListener("change", say);
    say();
    button.hidden = false;
  }

  function contents() {
    const links = [...document.querySelectorAll(".contents a[href^='#']")];
    const sections = links.map((link) => document.getElementById(link.hash.slice(1)));
    if (!links.length) return;
    const mark = () => {
      const line = innerHeight / 3;
      let at = sections.findLastIndex((one) => one && one.getBoundingClientRect().top <= line);
      if (innerHeight + scrollY >= document.documentElement.scrollHeight - 2) at = links.length - 1;
      links.forEach((link, place) => {
        if (place === Math.max(at, 0)) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      });
    };
    let waiting = false;
    addEventListener("scroll", () => {
      if (waiting) return;
      waiting = true;
      requestAnimationFrame(() => { waiting = false; mark(); });
    }, { passive: true });
    mark();
  }

  /** A link to a part that is closed opens it. */
  function openTarget() {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const closed = target && target.closest("details:not([open])");
    if (closed) { closed.open = true; target.scrollIntoView(); }
  }

  scheme();
  contents();
  openTarget();
  addEventListener("hashchange", openTarget);
  return { read, unzipped, made, named, plain, compact };
})();
