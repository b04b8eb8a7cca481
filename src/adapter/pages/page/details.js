// Shows a long list in a dialog, page by page.
import { make, tableBody, tableHead } from "./dom.js";
import { number, objects } from "./format.js";
import { address, read } from "./source.js";

const dialog = document.getElementById("details");
const title = document.getElementById("details-title");
const body = document.getElementById("details-body");
const more = document.getElementById("details-more");
let shown = 0; // counts the lists that were opened: late answers for another one are dropped

document.getElementById("details-close").addEventListener("click", () => dialog.close());
dialog.addEventListener("click", (event) => event.target === dialog && dialog.close()); // beside it
dialog.addEventListener("close", () => {
  shown++;
  body.replaceChildren();
});

/**
 * `what`: {title, document, key, node, parameters, table: {heads, row}}; row(item, place) makes a
 * row.
 */
export function showList(what) {
  const own = ++shown;
  title.textContent = what.title;
  const rows = tableBody();
  body.replaceChildren(
    make(
      "table",
      { class: "plain", role: "table", "aria-label": what.title },
      tableHead(what.table.heads),
      rows,
    ),
  );
  if (!dialog.open) dialog.showModal();
  const next = async () => {
    more.textContent = "Loading…";
    let answer;
    try {
      answer = (
        await read(
          address(what.document, what.node, { ...what.parameters, from: rows.childElementCount }),
          false,
        )
      ).value;
    } catch (error) {
      if (own === shown)
        more.replaceChildren(
          `Not available: ${error.message} `,
          make("button", { type: "button", onclick: next }, "Try again"),
        );
      return;
    }
    if (own !== shown) return;
    const items = objects(answer[what.key]);
    rows.append(
      ...items.map((item, index) => what.table.row(item, rows.childElementCount + index + 1)),
    );
    const all = number(answer.count) ?? 0;
    more.replaceChildren(`${rows.childElementCount} of ${all} `);
    if (items.length > 0 && rows.childElementCount < all)
      more.append(
        make(
          "button",
          { type: "button", onclick: next },
          `Show ${Math.min(200, all - rows.childElementCount)} more`,
        ),
      );
  };
  next();
}
