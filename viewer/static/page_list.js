// The list of entries in time, and the search over them.

import {
  address, clock, cover, data, dom, duration, entries, exactClock, items, make, order, picture, slug, state,
  tracks, words,
} from "./page_model.js";
import { drawLanes } from "./page_timeline.js";

const FIRST_CHARACTERS = 600;
const ROW = 44;

// Search

const haystacks = items.map((item) => {
  const told = item.isEntry ? (item.record ?? []).flatMap(([, values]) => values) : [item.outcome, item.error_class, item.message];
  return [item.text, ...told, ...(item.factors ?? []), item.speaker].filter(Boolean).join("\n").toLowerCase();
});

const carries = (item) => !state.factor || (item.factors ?? []).includes(state.factor);

// The factors that entries carry, with how many do, by their ids.
const carried = new Map();
for (const factor of entries.flatMap((entry) => entry.factors ?? [])) carried.set(factor, (carried.get(factor) ?? 0) + 1);

export function buildFactors() {
  const ids = [...carried.keys()].sort();
  dom.factor.append(...ids.map((id) => make("option", { value: id, textContent: `${id} (${carried.get(id)})` })));
  dom["factor-field"].hidden = !ids.length;
}

// Keep only entries that carry a factor; empty, or one that none carries: keep all.
export function keepFactor(id) {
  state.factor = dom.factor.value = carried.has(id) ? id : "";
}

export function search() {
  const wanted = state.query.toLowerCase();
  state.found = new Set(order.filter((index) => !state.hidden.has(items[index].track) && carries(items[index]) && haystacks[index].includes(wanted)));
  drawList();
  drawLanes();
  const all = state.found.size === items.length;
  const count = [...state.found].filter((index) => items[index].isEntry).length;
  dom.count.textContent = all ? `${entries.length} entries` : `${count} of ${entries.length} entries`;
  dom.nothing.hidden = state.found.size > 0;
  dom.nothing.textContent = !items.length ? "There is no entry of this video." : state.query ? `No entry shown holds “${state.query}”${state.factor ? ` and carries ${state.factor}` : ""}.` : state.factor ? `No entry shown carries ${state.factor}.` : "All tracks are switched off.";
}

function marked(text, wanted) {
  const lower = text.toLowerCase();
  if (!wanted || lower.length !== text.length) return [text];
  const parts = [];
  let from = 0;
  for (let at = lower.indexOf(wanted); at >= 0; at = lower.indexOf(wanted, from)) {
    parts.push(text.slice(from, at), make("mark", { textContent: text.slice(at, at + wanted.length) }));
    from = at + wanted.length;
  }
  return [...parts, text.slice(from)];
}

// The part of a long text that is worth a row: its beginning, or where what is searched for stands.
function excerpt(text, wanted) {
  if (state.isPrinting) return text;
  const at = wanted ? text.toLowerCase().indexOf(wanted) : -1;
  const from = at > FIRST_CHARACTERS / 2 ? at - 80 : 0;
  const end = from + FIRST_CHARACTERS;
  return (from ? "… " : "") + text.slice(from, end) + (end < text.length ? " …" : "");
}

// List. Rows of a minute are made when it comes into sight: a page of hours opens as fast as one of minutes.

export const sections = [];
const inSight = new Set();
const watcher = new IntersectionObserver((seen) => {
  for (const each of seen) {
    if (each.isIntersecting) inSight.add(each.target.section);
    else inSight.delete(each.target.section);
    if (each.isIntersecting) fill(each.target.section);
  }
}, { rootMargin: "800px 0px" });

export function buildList() {
  const step = duration > 4 * 3600 ? 300 : 60;
  for (const index of order) {
    const minute = Math.floor(items[index].start_s / step);
    if (sections.at(-1)?.minute !== minute) sections.push({ minute, indexes: [], found: [], isFilled: false });
    const section = sections.at(-1);
    section.indexes.push(index);
    items[index].section = section;
  }
  for (const section of sections) {
    section.rows = make("ol");
    section.node = make("section", { className: "minute" }, make("h3", { textContent: clock(section.minute * step, 0) }), section.rows);
    section.node.section = section;
    watcher.observe(section.node);
  }
  dom.list.append(...sections.map((section) => section.node));
  dom.list.classList.toggle("hours", duration >= 3600);
}

export function fill(section) {
  if (section.isFilled) return;
  section.isFilled = true;
  section.rows.style.minHeight = "";
  section.rows.replaceChildren(...section.found.map((index) => (items[index].row = row(items[index]))));
  tabStop();
}

// What was found is shown: minutes in sight at once, others when they come into it.
export function drawList() {
  for (const section of sections) {
    section.found = section.indexes.filter((index) => state.found.has(index));
    section.isFilled = false;
    section.node.hidden = !section.found.length;
    if (inSight.has(section)) fill(section);
    else empty(section);
  }
  const first = order.find((index) => state.found.has(index));
  if (first !== undefined) fill(items[first].section);
  tabStop();
}

function empty(section) {
  section.rows.replaceChildren();
  section.rows.style.minHeight = `${section.found.length * ROW}px`;
}

export function rowOf(item) {
  fill(item.section);
  return item.row;
}

function row(item) {
  const track = tracks[item.track];
  const shown = item.isEntry ? cover(item) : undefined;
  const link = make("a", { href: address(item), tabindex: "-1" },
    make("time", { textContent: clock(item.start_s), title: `${exactClock(item.start_s)} to ${exactClock(item.end_s)}` }),
    make("span", { className: "what" }, ...what(item, track)),
    rowText(item),
    shown === undefined ? null : picture(item, shown, { className: "thumb", alt: "" }));
  const made = make("li", { className: `row kind-${slug(track.kind)}${item.isEntry ? "" : ` gap outcome-${item.outcome}`}` }, link);
  made.dataset.index = item.index;
  if (item.index === state.chosen) markChosen(made);
  return made;
}

export function markChosen(row) {
  row.classList.add("chosen");
  row.firstChild.setAttribute("aria-current", "true");
}

function what(item, track) {
  if (!item.isEntry) return [track.label, make("b", { textContent: words(item.outcome) })];
  const told = [track.label, item.speaker ? make("span", { textContent: item.speaker, dir: "auto" }) : null];
  return [...told, ...(item.flags ?? []).map((flag) => make("span", { className: "flag", textContent: words(flag), title: data.meanings.flags[flag] ?? "" }))];
}

function rowText(item) {
  const wanted = state.query.toLowerCase();
  const text = item.isEntry ? item.text : gapText(item);
  const made = make("span", { className: "text", dir: "auto" }, ...marked(excerpt(text, wanted), wanted));
  if (wanted && item.isEntry && !text.toLowerCase().includes(wanted)) {
    const found = (item.record ?? []).find(([, values]) => values.some((value) => value.toLowerCase().includes(wanted)));
    const value = found?.[1].find((each) => each.toLowerCase().includes(wanted));
    if (value) made.append(make("small", { className: "in" }, `${found[0]}: `, ...marked(excerpt(value, wanted), wanted)));
  }
  return made;
}

function gapText(item) {
  const why = [item.error_class, item.message].filter(Boolean).join(": ") || data.meanings.outcomes[item.outcome];
  return `Until ${clock(item.end_s)}${item.windows > 1 ? `, ${item.windows} windows` : ""}: ${why}`;
}

// One row is in the order of the Tab key: the chosen one, else the first.
export function tabStop() {
  dom.list.querySelector('a[tabindex="0"]')?.setAttribute("tabindex", "-1");
  const index = state.found.has(state.chosen) ? state.chosen : order.find((each) => state.found.has(each));
  if (index !== undefined && items[index].section.isFilled) items[index].row.firstChild.setAttribute("tabindex", "0");
}
