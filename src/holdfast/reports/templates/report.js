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
      rows.forEach((row, i) => {
        const out = !words.every((word) => texts[i].includes(word));
        if (row.hidden !== out) row.hidden = out;
        left += !out;
      });
      count.textContent = `${left} of ${rows.length}`;
    };
    let wait = 0;
    input.addEventListener("input", () => { clearTimeout(wait); wait = setTimeout(apply, rows.length > 1000 ? 250 : 0); });
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

  // Save a figure as SVG or PNG, and its numbers as CSV. A drawing is copied with its computed style, title and legend.
  const SVG = Object.assign(document.createElement("div"), { innerHTML: "<svg>" }).firstChild.namespaceURI;
  const STYLE = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linejoin", "opacity", "font-size", "text-anchor"];
  const element = (name, values, text = "") => {
    const made = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(values)) made.setAttribute(key, value);
    made.textContent = text;
    return made;
  };
  const pixel = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d", { willReadFrequently: true });
  const plain = (colour) => {  // every program reads rgb()
    if (!/^(color|oklab|oklch|color-mix|light-dark)\(/.test(colour)) return colour;
    pixel.clearRect(0, 0, 1, 1); pixel.fillStyle = colour; pixel.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = pixel.getImageData(0, 0, 1, 1).data;
    return `rgba(${r},${g},${b},${a / 255})`;
  };
  const copied = (from) => {
    const to = from.cloneNode(false), style = getComputedStyle(from);
    for (const name of [...to.getAttributeNames()]) if (["class", "data-tip", "role", "aria-label", "aria-hidden"].includes(name)) to.removeAttribute(name);
    if (from.tagName !== "svg") for (const name of STYLE) if (style.getPropertyValue(name)) to.setAttribute(name, plain(style.getPropertyValue(name)));
    to.append(...[...from.childNodes].map((each) => each.nodeType === 1 ? copied(each) : each.cloneNode()));
    return to;
  };
  const frame = (figure, width, height) => {  // the page of a saved figure: its title, then what is drawn below
    const style = getComputedStyle(figure), ink = plain(getComputedStyle(document.body).color);
    const page = element("svg", { width, height: height + 30, viewBox: `0 0 ${width} ${height + 30}`, "font-family": "system-ui, sans-serif" });
    page.append(element("rect", { width: "100%", height: "100%", fill: plain(style.backgroundColor) }));
    page.append(element("text", { x: 10, y: 20, fill: ink, "font-size": 13, "font-weight": 600 }, title(figure)));
    return [page, ink];
  };
  const title = (figure) => figure.querySelector("figcaption").textContent.trim();
  const ofPlot = (figure, plot) => {
    const { width, height } = plot.viewBox.baseVal, items = [...figure.querySelectorAll(".legend li")];
    const places = []; let x = 10, row = 0;
    for (const item of items) {
      const wide = 36 + 6.6 * item.textContent.length;
      if (x > 10 && x + wide > width) { x = 10; row += 1; }
      places.push([x, row]); x += wide;
    }
    const [page, ink] = frame(figure, width, height + (items.length ? 18 * (row + 1) + 8 : 0));
    const drawing = copied(plot);
    for (const [key, value] of Object.entries({ x: 0, y: 30, width, height })) drawing.setAttribute(key, value);
    page.append(drawing);
    items.forEach((item, i) => {
      const key = copied(item.querySelector("svg")), [left, line] = places[i], top = height + 34 + 18 * line;
      for (const [name, value] of Object.entries({ x: left, y: top, width: 22, height: 12 })) key.setAttribute(name, value);
      page.append(key, element("text", { x: left + 27, y: top + 10, fill: ink, "font-size": 11.5 }, item.textContent.trim()));
    });
    return page;
  };
  const ofHeat = (figure, table) => {
    const at = table.getBoundingClientRect(), [page, ink] = frame(figure, Math.ceil(at.width) + 20, Math.ceil(at.height) + 10);
    for (const cell of table.querySelectorAll("th, td")) {
      const box = cell.getBoundingClientRect(), style = getComputedStyle(cell), x = box.x - at.x + 10, y = box.y - at.y + 30;
      if (cell.tagName === "TD") page.append(element("rect", { x, y, width: box.width, height: box.height, rx: 3, fill: plain(style.backgroundColor) }));
      page.append(element("text", { x: x + box.width / 2, y: y + box.height / 2 + 4, fill: plain(style.color) || ink, "font-size": style.fontSize, "text-anchor": "middle" }, cell.textContent));
    }
    return page;
  };
  const quoted = (text) => /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  const csv = (figure) => {
    const tables = [...figure.querySelectorAll("table")], rows = tables.flatMap((table, i) => [...table.rows].slice(i ? 1 : 0));
    return rows.map((row) => [...row.cells].map((cell) => quoted(cell.innerText === "" ? cell.textContent.trim() : cell.innerText.replace(/\s+/g, " ").trim())).join(",")).join("\n") + "\n";
  };
  const save = (figure, kind, content) => {
    const link = document.createElement("a"), name = title(figure).toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "").slice(0, 60) || "figure";
    link.href = URL.createObjectURL(content); link.download = `${name}.${kind}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  };
  const png = (figure, drawing) => {
    const image = new Image(), canvas = document.createElement("canvas"), scale = 3;
    image.onload = () => {
      canvas.width = image.width * scale; canvas.height = image.height * scale;
      canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
      canvas.toBlob((content) => save(figure, "png", content));
    };
    image.src = `data:image/svg+xml,${encodeURIComponent(new XMLSerializer().serializeToString(drawing))}`;
  };
  for (const figure of document.querySelectorAll("figure.card")) {
    const plot = figure.querySelector("svg.plot"), heat = figure.querySelector("table.heat"), bar = document.createElement("div");
    const drawn = plot ? () => ofPlot(figure, plot) : heat ? () => ofHeat(figure, heat) : null;
    const ways = drawn ? { SVG: () => save(figure, "svg", new Blob([new XMLSerializer().serializeToString(drawn())], { type: "image/svg+xml" })), PNG: () => png(figure, drawn()) } : {};
    if (figure.querySelector("table")) ways.CSV = () => save(figure, "csv", new Blob([csv(figure)], { type: "text/csv" }));
    bar.className = "save";
    for (const [kind, act] of Object.entries(ways)) {
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: kind, title: `Save as ${kind}` });
      button.setAttribute("aria-label", `Save ${title(figure)} as ${kind}`);
      button.addEventListener("click", act);
      bar.append(button);
    }
    if (bar.childNodes.length) figure.append(bar);
  }

  for (const copy of document.querySelectorAll(".copy")) {
    copy.hidden = !navigator.clipboard;
    copy.addEventListener("click", async () => {
      try { await navigator.clipboard.writeText(copy.closest("section").querySelector("pre").textContent); copy.textContent = "Copied"; }
      catch { copy.textContent = "Select it and copy"; }
    });
  }
  addEventListener("beforeprint", () => document.querySelectorAll("details.more").forEach((each) => { each.open = true; }));
})();
