/* What matters to the reader: ranks the table anew, and the chart of the ranking with it. */
"use strict";
underdog.utility = (() => {
  const { read, made, named, plain, compact } = underdog;
  const SHOWN = 15;
  const MORE = 50;
  const PRESETS = { cheapest: 1, fastest: 0, balanced: 0.5, deadline: 1 };
  const SVG = "http://www.w3.org/2000/svg";

  /** How good a row is by a weight of cost: [value, low, high] of dollars^w · hours^(1 − w).
   *  Less is better; null where hours or dollars are not known. */
  function score(row, weight) {
    if (!row.hours || !row.dollars) return null;
    const at = (end) => {
      const [hours, dollars] = [row.hours[end], row.dollars[end]];
      if (hours === null || dollars === null) return null;
      return dollars ** weight * hours ** (1 - weight);
    };
    return [at(0), at(1), at(2)];
  }

  /** How surely a row is done in time: "", "may be late", "late" or "surely late". */
  function lateness(row, { deadline, scale }) {
    if (!deadline || !row.hours) return "";
    const [value, low, high] = row.hours.map((hours) => (hours === null ? null : hours * scale));
    if (value > deadline) return low !== null && low <= deadline ? "late" : "surely late";
    return high !== null && high > deadline ? "may be late" : "";
  }

  const isLate = (row, wish) => ["late", "surely late"].includes(lateness(row, wish));

  /** Places in the order of the wish: what is in time before what is late, then the best first,
   *  what is not known last. Equals stay in the order of the decision. */
  function order(rows, wish) {
    const keys = rows.map((row, place) => {
      const found = wish.decided ? [place] : score(row, wish.weight);
      const late = !wish.asDecided && isLate(row, wish);
      return found === null ? [2, 0, place] : [Number(late), found[0], place];
    });
    const by = (a, b) => keys[a][0] - keys[b][0] || keys[a][1] - keys[b][1] || keys[a][2] - keys[b][2];
    return rows.map((_, place) => place).sort(by);
  }

  function overlap(one, other) {
    if (!one || !other || one[1] === null || other[1] === null) return false;
    return one[1] <= other[2] && other[1] <= one[2];
  }

  const REMARKS = {
    "may be late": "may miss the deadline", late: "probably misses the deadline",
    "surely late": "misses the deadline",
  };

  class Preferences {
    constructor(section, data) {
      Object.assign(this, { section, data, form: section.querySelector("form"), most: SHOWN });
      this.body = section.querySelector("table.ranked tbody");
      this.more = section.querySelector(".more");
      this.given = this.form.elements.deadline.value;
      this.preset = "decided";
      this.listen();
      this.form.hidden = false;
      for (const cell of section.querySelectorAll(".bar")) cell.hidden = false;
      this.show();
    }

    listen() {
      const { form } = this;
      form.addEventListener("submit", (event) => event.preventDefault());
      form.addEventListener("click", (event) => {
        const button = event.target.closest("[data-preset]");
        if (button) this.choose(button.dataset.preset);
      });
      form.addEventListener("input", (event) => {
        if (event.target.name === "weight") this.preset = "";
        this.show();
      });
      this.more.querySelector("button").addEventListener("click", () => {
        this.most += MORE;
        this.show();
      });
    }

    choose(preset) {
      const { deadline, weight } = this.form.elements;
      this.preset = preset;
      if (preset === "decided") deadline.value = this.given;
      else weight.value = String(100 * PRESETS[preset]);
      if (preset === "deadline" && !deadline.value) {
        deadline.value = this.usualDeadline();
        deadline.focus();
      }
      this.show();
    }

    /** A deadline to start from: between the fastest and the cheapest. */
    usualDeadline() {
      const known = this.data.rows.filter((row) => score(row, 1));
      if (!known.length) return "";
      const best = (weight) => known[order(known, { weight, scale: 1 })[0]].hours[0];
      return Number((Math.sqrt(best(0) * best(1)) * this.scale()).toPrecision(2));
    }

    scale() {
      const field = this.form.elements.samples;
      const samples = field ? Number(field.value) : 0;
      return samples > 0 ? samples / 1e6 : 1;
    }

    wish() {
      const { deadline, weight } = this.form.elements;
      const decided = this.preset === "decided";
      return {
        decided, asDecided: decided && deadline.value === this.given, weight: Number(weight.value) / 100,
        deadline: Number(deadline.value) > 0 ? Number(deadline.value) : null, scale: this.scale(),
      };
    }

    show() {
      const wish = this.wish();
      const places = order(this.data.rows, wish);
      const scores = this.data.rows.map((row) => (wish.decided ? row.utility : score(row, wish.weight)));
      const first = places[0];
      const told = scores.map((found, place) => this.relative(found, scores[first], wish, place));
      const shown = places.slice(0, this.most);
      const scale = along(shown.map((place) => told[place]));
      this.body.replaceChildren(...shown.map((place, at) => this.row(place, { at, first, told, wish, scale, scores })));
      this.controls(wish, places);
      this.say(wish, places, scores);
      this.section.dispatchEvent(new CustomEvent("ranked", {
        bubbles: true, detail: { wish, data: this.data, places, told },
      }));
    }

    /** What the column of scores shows: the utility as decided, else times the first. */
    relative(found, best, wish) {
      if (wish.decided || !found) return found;
      return found.map((end) => (end === null ? null : end / best[0]));
    }

    row(place, { at, first, told, wish, scale, scores }) {
      const row = this.data.rows[place];
      const tied = at > 0 && !same(row, this.data.rows[first]) && overlap(scores[place], scores[first]);
      const element = made("tr", at === 0 ? "first" : "");
      element.classList.toggle("late", isLate(row, wish));
      const name = made("th");
      name.scope = "row";
      name.append(bidi("machine", row.machine), places(row.where));
      const remarks = [tied ? "cannot be told apart from the first" : "", REMARKS[lateness(row, wish)] ?? ""].filter(Boolean);
      if (remarks.length) name.append(made("span", "remark", remarks.join("; ")));
      name.append(...row.doubts.map((doubt) => made("span", "doubt", doubt)));
      const unranked = wish.decided && row.rank === null;
      element.append(
        made("td", "figure place", unranked ? "–" : String(at + 1)), name, source(row.source),
        made("td", "figure", row.price === null ? "unknown" : plain(row.price)),
        figure("hours", row.hours, wish.scale), figure("dollars", row.dollars, wish.scale),
        figure("score", told[place], 1, wish.decided ? "" : " ×"), bar(told[place], scale, row.source),
      );
      return element;
    }

    controls(wish, places) {
      for (const button of this.form.querySelectorAll("[data-preset]")) {
        button.setAttribute("aria-pressed", String(button.dataset.preset === this.preset));
      }
      const cost = Math.round(100 * wish.weight);
      this.form.querySelector("output").textContent = wish.decided
        ? "not in use: the order is as decided"
        : { 0: "only hours count", 50: "1 % cheaper counts as much as 1 % faster", 100: "only dollars count" }[cost]
          ?? `${cost} % cost, ${100 - cost} % speed`;
      const heading = this.section.querySelector("thead .score");
      heading.textContent = wish.decided ? this.data.unit : "Times the first";
      const field = this.form.elements.samples;
      if (field) {
        const samples = Number(field.value) > 0 ? compact(Number(field.value), 4) : "a million";
        this.section.querySelector("caption .of").textContent = `of ${samples} samples`;
      }
      const left = places.length - this.most;
      this.more.hidden = left <= 0;
      this.more.querySelector("button").textContent =
        `Show ${Math.min(MORE, left)} more of ${places.length.toLocaleString("en-US")}`;
    }

    /** The new answer in one sentence, read aloud where the page is. */
    say(wish, places, scores) {
      const said = this.section.querySelector(".verdict");
      const first = this.data.rows[places[0]];
      if (!wish.asDecided && isLate(first, wish)) {
        const may = this.data.rows.filter((row) => lateness(row, wish) === "late").length;
        const done = may ? "expected to be done" : "done";
        const rest = may ? `; ${may.toLocaleString("en-US")} may be, at the good end of what is predicted` : "";
        said.textContent = `No offer of the table is ${done} in ${plain(wish.deadline)} hours${rest}.`;
        return;
      }
      const tied = places.slice(1).filter((place) => !same(this.data.rows[place], first)
        && overlap(scores[place], scores[places[0]])).length;
      const cost = first.dollars ? `$${plain(first.dollars[0] * wish.scale)}` : "an unknown price";
      const time = first.hours ? ` in ${plain(first.hours[0] * wish.scale)} hours` : "";
      const others = tied
        ? ` ${tied.toLocaleString("en-US")} of the other ${(places.length - 1).toLocaleString("en-US")} cannot be told apart from it.`
        : "";
      const deadline = this.form.elements.deadline.value;
      const left = deadline && !(Number(deadline) > 0) ? " The deadline is no positive number of hours, and is left out." : "";
      const untested = first.source === "measured" ? "" : ": only a test can confirm it";
      said.textContent = `First${wish.decided ? ", as decided" : ""}: ${first.name}, ${cost}${time}, ${first.source}${untested}.${others}${left}`;
    }
  }

  /** The same hardware: its offers differ by price alone, whatever the interval of its rate. */
  function same(one, other) {
    return one.machine === other.machine && one.source === other.source && one.where[0] === other.where[0];
  }

  function bidi(className, text) {
    const element = made("span", className);
    element.append(named(text));
    return element;
  }

  function places(words) {
    const element = made("span", "where");
    words.forEach((word, i) => element.append(i ? " · " : "", made("span", "word", word)));
    return element;
  }

  function source(name) {
    const cell = made("td");
    const told = made("span", `source ${name}`);
    const dot = draw("svg", { class: "dot", viewBox: "0 0 10 10", "aria-hidden": "true" }, told);
    draw("circle", { cx: 5, cy: 5, r: 3.6 }, dot);
    told.append(name);
    cell.append(told);
    return cell;
  }

  function figure(className, ends, scale, unit = "") {
    const cell = made("td", `figure ${className}`);
    if (!ends) { cell.append(made("span", "unknown", "unknown")); return cell; }
    const [value, low, high] = ends.map((end) => (end === null ? null : end * scale));
    cell.append(made("span", "value", `${compact(value)}${unit}`));
    if (low !== null && high !== null) {
      cell.append(" ", made("span", "interval", `(${compact(low)}–${compact(high)})`));
    }
    return cell;
  }

  /** Where a value stands along a bar, 0 to 1: by its logarithm where values are far apart. */
  function along(all) {
    const known = all.filter((ends) => ends && ends[0] > 0);
    const values = known.map((ends) => ends[0]);
    const [least, most] = [Math.min(...values), Math.max(...values)];
    if (!known.length) return null;
    const end = Math.min(Math.max(...known.map((ends) => ends[2] ?? ends[0])), 2.5 * most);
    if (most < 10 * least) return (value) => value / end;
    const start = Math.max(Math.min(...known.map((ends) => ends[1] ?? ends[0])), least / 2.5);
    return (value) => Math.log(Math.max(value, start) / start) / Math.log(end / start);
  }

  function draw(name, attributes, into) {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    into.append(element);
    return element;
  }

  function bar(ends, place, source) {
    const cell = made("td", "bar");
    if (!ends || !place) return cell;
    const at = (value) => `${(98 * Math.min(Math.max(place(value), 0), 1) + 1).toFixed(2)}%`;
    const svg = draw("svg", { "aria-hidden": "true" }, cell);
    const kind = source === "measured" ? "" : "predicted";
    if (ends[1] !== null && ends[2] !== null) {
      draw("line", { class: `span ${kind && "predicted-span"}`, x1: at(ends[1]), x2: at(ends[2]), y1: 10, y2: 10 }, svg);
    }
    draw("circle", { class: `mark ${kind}`, cx: at(ends[0]), cy: 10, r: 4 }, svg);
    return cell;
  }

  async function begin(section) {
    const holder = section.querySelector("script.points");
    if (holder) section.preferences = new Preferences(section, await read(holder));
  }
  for (const section of document.querySelectorAll("section.utility")) begin(section);
  return { begin, order, score };
})();
