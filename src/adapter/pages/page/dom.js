// Makes elements. Texts of the node become text nodes and attribute values, never markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name === "onclick") element.addEventListener("click", value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(
    ...children.flat(Infinity).filter((child) => child !== undefined && child !== null),
  );
  return element;
}

/** An HTML element; children are elements and texts. */
export function make(tag, attributes, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

export function makeSvg(tag, attributes, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

// Roles are repeated as attributes: on a narrow screen the parts of a table are laid out as blocks,
// and browsers then forget that it is one.

/** The head of a table. */
export function tableHead(heads) {
  return make(
    "thead",
    { role: "rowgroup" },
    make(
      "tr",
      { role: "row" },
      heads.map((head) => make("th", { scope: "col", role: "columnheader" }, head)),
    ),
  );
}

export function tableBody(...rows) {
  return make("tbody", { role: "rowgroup" }, ...rows);
}

/** A row whose cell number `header` names it. */
export function tableRow(heads, cells, header = 0) {
  return make(
    "tr",
    { role: "row" },
    heads.map((head, index) =>
      index === header
        ? make("th", { scope: "row", role: "rowheader", "data-head": head }, cells[index])
        : make("td", { role: "cell", "data-head": head }, cells[index]),
    ),
  );
}

/** Replaces an element's content. The focus stays where it was, if what had it is there again. */
export function replace(element, ...children) {
  const focused = element.contains(document.activeElement)
    ? document.activeElement.dataset.focus
    : undefined;
  element.replaceChildren(
    ...children.flat(Infinity).filter((child) => child !== undefined && child !== null),
  );
  if (focused !== undefined)
    element.querySelector(`[data-focus="${CSS.escape(focused)}"]`)?.focus();
}

/** Calls `draw` and replaces the content if `value` is another than at the last call. */
export function update(element, value, draw) {
  const key = JSON.stringify(value);
  if (element.drawn === key) return;
  element.drawn = key;
  replace(element, draw());
}
