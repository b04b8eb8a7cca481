// Draws the last hour of one value as a small line.
import { makeSvg } from "./dom.js";

const WIDTH = 120,
  HEIGHT = 28,
  STEPS = 120;

/** The coordinates of the values, in pieces between gaps. The newest value is at the right edge. */
function pieces(values, most) {
  const all = [];
  let piece = [];
  values.forEach((value, index) => {
    if (value === null) {
      if (piece.length > 0) all.push(piece);
      piece = [];
      return;
    }
    const x = WIDTH - ((values.length - 1 - index) * WIDTH) / STEPS;
    const y = HEIGHT - 1 - (Math.min(Math.max(value, 0), most) / most) * (HEIGHT - 2);
    piece.push([x, y]);
  });
  if (piece.length > 0) all.push(piece);
  return all;
}

const path = (points) =>
  points
    .map(([x, y], index) => `${index === 0 ? "M" : "L"}${x.toFixed(1)} ${y.toFixed(1)}`)
    .join("");

/**
 * `values`: of the last hour, in equal steps, null where unknown; `now`: the newest value;
 * `most`: the top of the chart; `what` and `show`: for the description of the chart.
 */
export function chart(values, now, most, what, show) {
  const points = values.filter((value) => value === null || Number.isFinite(value)).slice(-STEPS);
  const known = points.filter((value) => value !== null);
  if (now !== undefined) {
    points.push(now);
    known.push(now);
  }
  const description =
    known.length === 0
      ? `${what}: no values in the last hour`
      : `${what} in the last hour: lowest ${show(Math.min(...known))}, highest ${show(Math.max(...known))}`;
  const top = Math.max(most, ...known) || 1;
  return makeSvg(
    "svg",
    {
      class: "chart",
      viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": description,
    },
    makeSvg("title", {}, description),
    makeSvg("path", { class: "axis", d: `M0 ${HEIGHT - 0.5}H${WIDTH}` }),
    pieces(points, top).map((piece) => [
      makeSvg("path", {
        class: "area",
        d: `${path(piece)}L${piece.at(-1)[0].toFixed(1)} ${HEIGHT}L${piece[0][0].toFixed(1)} ${HEIGHT}Z`,
      }),
      makeSvg("path", {
        class: "line",
        d: path(piece.length > 1 ? piece : [[piece[0][0] - 3, piece[0][1]], piece[0]]),
      }),
    ]),
  );
}
