// Sorting the table of videos by a column, and searching the names.

import { startTheme } from "./page_theme.js";

const table = document.getElementById("videos");
const body = table.tBodies[0];
const filter = document.getElementById("filter");
const count = document.getElementById("count");
const nothing = document.getElementById("nothing");

function value(row, column) {
  const cell = row.cells[column];
  return cell.dataset.value === undefined ? cell.textContent.trim() : Number(cell.dataset.value);
}

function compare(a, b) {
  return typeof a === "number" ? a - b : a.localeCompare(b, undefined, { numeric: true });
}

function sort(heading) {
  const column = heading.cellIndex;
  const isNumber = heading.classList.contains("number");
  const wasFirst = heading.getAttribute("aria-sort") === (isNumber ? "descending" : "ascending");
  const sign = wasFirst === isNumber ? 1 : -1;
  const rows = [...body.rows].sort((a, b) => sign * compare(value(a, column), value(b, column)));
  body.append(...rows);
  for (const each of table.tHead.rows[0].cells) each.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
}

function search() {
  const wanted = filter.value.toLowerCase();
  let found = 0;
  for (const row of body.rows) {
    row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted);
    found += row.hidden ? 0 : 1;
  }
  count.textContent = wanted ? `${found} of ${body.rows.length} videos` : `${body.rows.length} videos`;
  nothing.hidden = found > 0;
}

startTheme();
table.tHead.addEventListener("click", (event) => {
  const heading = event.target.closest("button")?.closest("th");
  if (heading) sort(heading);
});
filter.addEventListener("input", search);
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !event.target.matches("input")) {
    event.preventDefault();
    filter.focus();
  }
});
search();
document.documentElement.dataset.ready = "true";
