"use strict";
(() => {
  // Light, dark, or as the system has it. A page from the file system may have no storage: then it forgets.
  const root = document.documentElement, button = document.querySelector(".theme");
  const kept = { get: () => { try { return localStorage.getItem("theme"); } catch { return null; } },
                 set: (value) => { try { localStorage.setItem("theme", value); } catch { /* it forgets */ } } };
  const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  if (kept.get()) root.dataset.theme = kept.get();
  const tell = () => { button.textContent = dark() ? "Light" : "Dark"; button.setAttribute("aria-label", `Use ${dark() ? "light" : "dark"} colours`); };
  if (button) {
    button.hidden = false;
    button.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; kept.set(root.dataset.theme); tell(); });
    tell();
  }

  // Where the contents would stand before everything else, they begin folded.
  if (innerWidth < 1120) document.querySelector("nav.contents details")?.removeAttribute("open");

  // Tables that sort by a column, numbers as numbers; what has no value stays last.
  const value = (row, place) => { const cell = row.cells[place]; return cell.dataset.v ?? cell.textContent.trim(); };
  const compare = (a, b, sign) => {
    const x = parseFloat(a), y = parseFloat(b), none = (text) => text === "" || text === "–";
    if (none(a) || none(b)) return none(a) - none(b);
    return sign * (isNaN(x) || isNaN(y) ? a.localeCompare(b, undefined, { numeric: true }) : x - y);
  };
  for (const table of document.querySelectorAll("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((head, place) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const falling = head.getAttribute("aria-sort") === "descending" || (head.getAttribute("aria-sort") === "none" && place === 0);
        for (const other of table.tHead.rows[0].cells) other.setAttribute("aria-sort", "none");
        head.setAttribute("aria-sort", falling ? "ascending" : "descending");
        const body = table.tBodies[0];
        body.append(...[...body.rows].sort((a, b) => compare(value(a, place), value(b, place), falling ? 1 : -1)));
      });
    });
  }

  // Long tables are filtered by words; all of them must be in a row.
  for (const table of document.querySelectorAll("table.filterable")) {
    const box = document.createElement("div"), label = document.createElement("label");
    const input = document.createElement("input"), count = document.createElement("span"), rows = [...table.tBodies[0].rows];
    box.className = "filter"; input.type = "search"; input.placeholder = "words, such as replay 2";
    label.append("Filter ", input); count.setAttribute("role", "status"); box.append(label, count);
    table.closest(".scroll").before(box);
    const texts = rows.map((row) => row.textContent.toLowerCase());
    const apply = () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let left = 0;
      rows.forEach((row, i) => { row.hidden = !words.every((word) => texts[i].includes(word)); left += !row.hidden; });
      count.textContent = `${left} of ${rows.length}`;
    };
    input.addEventListener("input", apply);
    apply();
  }

  // The number behind a mark, under the pointer or the finger.
  const tip = Object.assign(document.createElement("div"), { id: "tip", hidden: true });
  document.body.append(tip);
  const show = (event) => {
    const mark = event.target.closest?.("[data-tip]");
    tip.hidden = !mark;
    if (!mark) return;
    tip.textContent = mark.dataset.tip;
    const box = mark.getBoundingClientRect(), wide = tip.offsetWidth;
    tip.style.left = `${Math.min(Math.max(box.x + box.width / 2 - wide / 2, 6), innerWidth - wide - 6)}px`;
    tip.style.top = `${box.y > 40 ? box.y - tip.offsetHeight - 6 : box.bottom + 6}px`;
  };
  document.addEventListener("pointerover", show);
  document.addEventListener("pointerdown", show);
  document.addEventListener("keydown", (event) => { if (event.key === "Escape") tip.hidden = true; });

  for (const copy of document.querySelectorAll(".copy")) {
    copy.hidden = !navigator.clipboard;
    copy.addEventListener("click", async () => {
      try { await navigator.clipboard.writeText(copy.closest("section").querySelector("pre").textContent); copy.textContent = "Copied"; }
      catch { copy.textContent = "Select it and copy"; }
    });
  }
  addEventListener("beforeprint", () => document.querySelectorAll("details.more").forEach((each) => { each.open = true; }));
})();
