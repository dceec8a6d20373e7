/* The chart of the ranking, drawn anew by what matters to the reader. */
"use strict";
(() => {
  const { plain, compact, charts } = underdog;
  const LOG_FROM = 10;

  /** The chart of a decision's ranking with other rows, the best first.
   *
   *  Every row of `original` that has a label is one offer; where its texts and marks stand is
   *  taken from the first of them. Values are times that of the first offer, less is better.
   */
  function reranked(original, { data, places, told, weight }) {
    const shape = original.data.values.filter((row) => row.label);
    const { at, y } = shape[0];
    const shown = places.filter((place) => told[place]).slice(0, Math.max(shape.length, 10));
    if (!shown.length) return null;
    const rows = shown.map((place, index) => row(data.rows[place], told[place], index, { at, y }));
    const [x0, x1] = told[shown[0]].slice(1);
    const band = x0 !== null && x1 !== null && rows.length > 1
      ? [{ band: 1, x0, x1, from: y, to: rows.length }] : [];
    const by = weighed(weight);
    return {
      ...original,
      title: { ...original.title, text: `Ranked ${by}`, subtitle: [`Ranked ${by}, as times the first. Shaded: the 95 % interval of the first.`] },
      description: `${rows.length} offers ranked ${by}. The first is ${rows[0].offer}.`,
      height: (original.height / shape.length) * rows.length,
      data: { values: [...band, ...rows] },
      layer: original.layer.map((layer) => rescaled(layer, across(rows), rows.length)),
    };
  }

  function row({ name, source }, [value, low, high], index, { at, y }) {
    const ends = low !== null && high !== null ? { x0: low, x1: high } : {};
    const interval = "x0" in ends ? ` (${plain(low)}–${plain(high)})` : "";
    return {
      kind: source === "measured" ? "measured" : "predicted", x: value, ...ends,
      at: index + at, y: index + y, label: `${index + 1}.  ${name}`, offer: name,
      rank: String(index + 1), figure: `${compact(value)} ×${interval}`,
    };
  }

  function weighed(weight) {
    if (weight === 1) return "by cost";
    if (weight === 0) return "by speed";
    const cost = Math.round(100 * weight);
    return `by ${cost} % cost and ${100 - cost} % speed`;
  }

  /** Scale and axis that hold all rows. */
  function across(rows) {
    const ends = rows.flatMap((one) => [one.x, one.x0 ?? one.x, one.x1 ?? one.x]);
    const [low, high] = [Math.min(...ends), Math.max(...ends)];
    const log = low > 0 && high / low > LOG_FROM;
    const room = log ? (high / low) ** 0.04 : 0.05 * (high - low || high);
    const domain = log ? [low / room, high * room] : [Math.max(0, low - room), high + room];
    return { type: log ? "log" : "linear", domain, nice: false, zero: false };
  }

  /** Round values of a logarithmic axis. */
  function ticks([low, high]) {
    const steps = high / low < 300 ? [1, 2, 5] : [1];
    const powers = Array.from({ length: 40 }, (_, i) => 10 ** (i - 20));
    return powers.flatMap((power) => steps.map((step) => step * power)).filter((v) => v >= low && v <= high);
  }

  function rescaled(layer, scale, many) {
    const encoding = { ...layer.encoding };
    const { x, y } = encoding;
    if (x && x.scale) {
      const axis = { ...x.axis, title: "times the first, less is better", tickCount: 6 };
      if (scale.type === "log") axis.values = ticks(scale.domain);
      else delete axis.values;
      encoding.x = { ...x, scale, axis };
    }
    if (y && y.scale) encoding.y = { ...y, scale: { ...y.scale, domain: [0, many] } };
    return { ...layer, encoding };
  }

  document.addEventListener("ranked", async ({ target, detail }) => {
    const scope = target.closest(".decision") ?? document;
    const figure = scope.querySelector('figure.chart[data-name="ranking"]');
    if (!figure) return;
    const { decided, weight } = detail.wish;
    if (decided) { charts.show(figure, null); return; }
    charts.show(figure, (original) => reranked(original, { ...detail, weight }));
  });
})();
