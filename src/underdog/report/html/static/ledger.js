/* The ledger: a search over all lines, shown by the page. */
"use strict";
underdog.ledger = (() => {
  const { read, made, named } = underdog;
  const PAGE = 25;

  /** Each line as [offer, verdict, reason]: what was there once for all is put together again. */
  function unpacked({ offers, verdicts, reasons }) {
    const { between, figures } = reasons.words;
    const left = figures.map((column) => column.split(" ").values());
    const told = between.at.map((place) => {
      const parts = between.words[place];
      return parts.slice(1).reduce((text, part, i) => text + left[i].next().value + part, parts[0]);
    });
    return reasons.at.map((reason, i) => {
      const parts = offers.map(({ words, at }) => words[at[i]]);
      const name = parts.filter((part) => part !== null).join("/");
      return [name, verdicts.words[verdicts.at[i]], told[reason]];
    });
  }

  class Ledger {
    constructor(section, holder) {
      Object.assign(this, { section, holder, form: section.querySelector("form"), at: 0 });
      this.body = section.querySelector("table.lines tbody");
      this.status = section.querySelector("table.lines [role=status]");
      this.pages = section.querySelector(".pages");
      this.form.hidden = false;
      this.form.addEventListener("submit", (event) => event.preventDefault());
      this.form.addEventListener("input", () => this.search());
      this.pages.addEventListener("click", (event) => this.go(event.target.dataset.go));
      const near = new IntersectionObserver((entries) => {
        if (!entries.some((entry) => entry.isIntersecting)) return;
        near.disconnect();
        this.search();
      }, { rootMargin: "400px" });
      near.observe(section);
    }

    /** The lines, unpacked when they are first asked for. */
    load() {
      this.loading ??= read(this.holder).then((packed) => {
        this.lines = unpacked(packed);
        this.texts = this.lines.map((line) => line.join("\n").toLowerCase());
        this.form.elements.verdict.append(...packed.verdicts.words.map((verdict) => {
          const option = made("option", "", verdict);
          option.value = verdict;
          return option;
        }));
        this.holder.remove();
      });
      return this.loading;
    }

    async search() {
      await this.load();
      const { find, verdict } = this.form.elements;
      const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
      const found = [];
      this.texts.forEach((text, i) => {
        if (verdict.value && this.lines[i][1] !== verdict.value) return;
        if (words.every((word) => text.includes(word))) found.push(i);
      });
      Object.assign(this, { found, at: 0 });
      this.show();
    }

    go(where) {
      if (!where) return;
      const last = Math.max(0, Math.ceil(this.found.length / PAGE) - 1);
      this.at = { first: 0, back: Math.max(0, this.at - 1), on: Math.min(last, this.at + 1), last }[where];
      this.show();
    }

    show() {
      const { lines, found, at } = this;
      const shown = found.slice(at * PAGE, (at + 1) * PAGE);
      this.body.replaceChildren(...shown.map((i) => {
        const row = made("tr");
        const name = made("th");
        name.scope = "row";
        const [offer, verdict, reason] = lines[i];
        name.append(named(offer));
        row.append(name, made("td", "", verdict), made("td", "", reason));
        return row;
      }));
      const count = (number) => number.toLocaleString("en-US");
      const all = count(lines.length);
      const part = found.length < lines.length ? ` that match, of ${all}` : "";
      const range = `${count(at * PAGE + 1)}–${count(at * PAGE + shown.length)}`;
      this.status.textContent = found.length
        ? `Lines ${range} of ${count(found.length)}${part}` : `None of ${all} lines matches`;
      const last = Math.max(0, Math.ceil(found.length / PAGE) - 1);
      this.pages.hidden = last === 0;
      this.pages.querySelector(".at").textContent = `page ${count(at + 1)} of ${count(last + 1)}`;
      for (const button of this.pages.querySelectorAll("button")) {
        button.disabled = ["first", "back"].includes(button.dataset.go) ? at === 0 : at >= last;
      }
    }
  }

  function begin(section) {
    const holder = section.querySelector("script.lines");
    if (holder) section.lines = new Ledger(section, holder);
  }
  for (const section of document.querySelectorAll("section.ledger")) begin(section);
  return { begin, unpacked };
})();
