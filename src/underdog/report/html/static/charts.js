/* Charts: drawn when they come into view, from the specification beside them. */
"use strict";
underdog.charts = (() => {
  const { read, unzipped, made } = underdog;
  const holder = document.querySelector("script.themes");
  const themes = holder ? read(holder) : Promise.resolve({});

  /** Vega, which a file carries compressed, and a server sends as a script. */
  let coming = null;
  function library() {
    coming ??= (async () => {
      const packed = document.querySelector("script.library");
      if (packed) {
        const script = made("script", "", await unzipped(packed));
        document.head.append(script);
      } else if (document.readyState !== "complete") {
        await new Promise((ready) => { addEventListener("load", ready); });
      }
    })();
    return coming;
  }

  let tip = null;
  function hide() { if (tip) { tip.remove(); tip = null; } }

  /** What Vega says of a mark, as text beside the pointer. */
  function tell(_, event, __, value) {
    hide();
    if (value === null || value === undefined || value === "") return;
    tip = made("div", "tip");
    if (typeof value === "object") {
      const list = made("dl");
      for (const [name, text] of Object.entries(value)) {
        if (text === null || text === undefined || text === "") continue;
        list.append(made("dt", "", name), made("dd", "", String(text)));
      }
      tip.append(list);
    } else tip.textContent = String(value);
    document.body.append(tip);
    const box = tip.getBoundingClientRect();
    const left = event.clientX + 14 + box.width > innerWidth ? event.clientX - 14 - box.width : event.clientX + 14;
    const top = event.clientY + 14 + box.height > innerHeight ? event.clientY - 14 - box.height : event.clientY + 14;
    tip.style.left = `${Math.max(4, left)}px`;
    tip.style.top = `${Math.max(4, top)}px`;
  }

  function options(config) {
    return {
      mode: "vega-lite", renderer: "svg", actions: false, ast: true, logLevel: 1, config,
      tooltip: tell, defaultStyle: false, loader: { load: refuse, sanitize: refuse },
    };
  }
  function refuse() { return Promise.reject(new Error("a chart asks nothing of the network")); }

  /** Draw a figure's chart as it is wanted: its own specification, or a change of it. */
  async function draw(figure) {
    const [{ page }] = await Promise.all([themes, library()]);
    figure.original ??= await read(figure.querySelector("script.spec"));
    const { change } = figure;
    const spec = (change && change(figure.original)) || figure.original;
    const plot = figure.querySelector(".plot");
    const place = made("div");
    place.ariaHidden = "true"; // the plot's label says what it shows
    const before = figure.view;
    place.classList.toggle("beside", Boolean(before)); // the old one stays until the new one is there
    if (before) plot.append(place);
    else plot.replaceChildren(place);
    const titled = "headed" in figure.dataset ? { ...spec, title: beneath(spec, page) } : spec;
    figure.view = await vegaEmbed(place, titled, options(page));
    if (before) {
      before.finalize();
      plot.replaceChildren(place);
      place.classList.remove("beside");
    }
    figure.spec = spec;
    plot.setAttribute("aria-label", spec.description ?? "");
    figure.querySelector(".save").hidden = false;
    if (figure.change !== change) await draw(figure);
  }

  /** Show a figure's chart with a change of its specification, or without one. */
  function show(figure, change) {
    if (!change && !figure.change) return;
    const drawing = figure.drawing && !figure.ready;
    figure.change = change;
    if (!figure.drawing || drawing) return;
    figure.ready = false;
    figure.drawing = draw(figure).finally(() => { figure.ready = true; });
  }

  /** The title of a chart below a heading of the page, which says the same: its subtitle alone. */
  function beneath({ title }, config) {
    if (!title || !title.subtitle) return undefined;
    return { ...title, text: title.subtitle, subtitle: [], fontSize: 12, fontWeight: 400, color: config.title.subtitleColor };
  }

  /** A picture of a chart in a file: always on light paper. */
  async function save(figure, kind) {
    const { picture } = await themes;
    const place = made("div");
    await begin(figure);
    const spec = { ...figure.spec, width: 800 };
    const { view, finalize } = await vegaEmbed(place, spec, options(picture));
    const link = made("a");
    if (kind === "svg") {
      link.href = URL.createObjectURL(new Blob([await view.toSVG()], { type: "image/svg+xml" }));
    } else link.href = await view.toImageURL("png", 2);
    link.download = `${figure.dataset.name}.${kind}`;
    link.click();
    finalize();
    if (kind === "svg") setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  }

  const waiting = new Set();
  const seen = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) if (isIntersecting) begin(target);
  }, { rootMargin: "300px" });

  function begin(figure) {
    if (!waiting.delete(figure)) return figure.drawing;
    seen.unobserve(figure);
    figure.drawing = draw(figure).finally(() => { figure.ready = true; });
    return figure.drawing;
  }

  /** Charts of a part of the page that came later. */
  function watch(root = document) {
    for (const figure of root.querySelectorAll("figure.chart")) {
      if (figure.drawing || waiting.has(figure)) continue;
      waiting.add(figure);
      seen.observe(figure);
    }
  }

  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-save]");
    if (button) save(button.closest("figure"), button.dataset.save);
  });
  addEventListener("scroll", hide, { passive: true, capture: true });
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") hide(); });

  // what is printed is drawn first, as far as the page had time for it
  const idle = window.requestIdleCallback ?? ((work) => setTimeout(work, 200));
  function ahead() {
    const next = [...waiting].find((figure) => figure.checkVisibility());
    if (next) begin(next).finally(() => idle(ahead));
  }
  const opened = [];
  addEventListener("beforeprint", () => {
    for (const part of document.querySelectorAll("details:not([open])")) {
      part.open = true;
      opened.push(part);
    }
  });
  addEventListener("afterprint", () => { for (const part of opened.splice(0)) part.open = false; });

  watch();
  addEventListener("load", () => idle(ahead));
  return { begin, draw, show, watch };
})();
