// Choosing an entry: by a click, a key, a time, or the address of the page.

import {
  address, byId, clock, dom, duration, entries, hooks, items, make, order, readTime, state, tracks,
} from "./page_model.js";
import { keepFactor, markChosen, rowOf, search, tabStop } from "./page_list.js";
import { markLanes, placeCursor } from "./page_timeline.js";
import { details } from "./page_details.js";

export function setPosition(seconds) {
  state.position = seconds;
  placeCursor();
  for (const row of dom.list.querySelectorAll(".now")) row.classList.remove("now");
  for (const item of items) {
    if (item.start_s <= seconds && seconds < item.end_s && state.found.has(item.index)) rowOf(item).classList.add("now");
  }
}

export function choose(index, { seek = true, focus = false, block = "nearest", write = true } = {}) {
  for (const row of dom.list.querySelectorAll(".chosen")) {
    row.classList.remove("chosen");
    row.firstChild.removeAttribute("aria-current");
  }
  const keptFocus = dom.details.contains(document.activeElement);
  const former = state.chosen;
  tell("");
  state.chosen = index;
  document.body.classList.toggle("has-chosen", index !== null);
  if (write) writeAddress();
  if (index === null) {
    showHint();
    if (keptFocus && former !== null) rowOf(items[former]).firstChild.focus();
  } else {
    const item = items[index];
    const row = rowOf(item);
    markChosen(row);
    row.scrollIntoView({ block: matchMedia("(max-width: 899px)").matches ? "start" : block });
    dom.details.replaceChildren(...details(item).filter(Boolean));
    dom.details.scrollTop = 0;
    showTime(item.start_s);
    if (focus) row.firstChild.focus({ preventScroll: true });
    if (seek) {
      state.position = item.start_s;
      hooks.onSeek(item.start_s);
    }
  }
  tabStop();
  markLanes();
  placeCursor();
}

const HINT = entries.length ? "Choose an entry: its frames, record, and what it rests on are shown here." : "Nothing is written about this video.";

export function showHint(text = HINT) {
  dom.details.replaceChildren(make("p", { className: "hint", textContent: text }));
}

function showTime(seconds) {
  const left = (seconds / duration) * dom.axis.offsetWidth;
  const scroll = dom.scroll;
  if (left < scroll.scrollLeft || left > scroll.scrollLeft + scroll.clientWidth * 0.9) scroll.scrollLeft = left - scroll.clientWidth / 3;
}

// The entry that is best for a time: of those on display the shortest, else the next.
function at(seconds, track = null) {
  const there = order.filter((index) => state.found.has(index) && (track === null || items[index].track === track));
  const over = there.filter((index) => items[index].start_s <= seconds && seconds < items[index].end_s);
  const length = (index) => items[index].end_s - items[index].start_s;
  if (over.length) return over.reduce((best, index) => (length(index) <= length(best) ? index : best));
  return there.length ? there.reduce((best, index) => (distance(index, seconds) < distance(best, seconds) ? index : best)) : null;
}

const distance = (index, seconds) => Math.min(Math.abs(items[index].start_s - seconds), Math.abs(items[index].end_s - seconds));

// The status line of the page: what became of what was asked.
function tell(text) {
  dom.told.textContent = text;
}

export function goTo(seconds, options) {
  const index = at(Math.min(Math.max(0, seconds), duration));
  if (index === null) return;
  choose(index, { block: "center", ...options, seek: false });
  if (seconds > duration) tell(`The video ends at ${clock(duration)}, before ${clock(seconds)}: this is the last of it.`);
  state.position = seconds;
  placeCursor();
  hooks.onSeek(seconds);
}

export function walk(step, isSameTrack) {
  const track = state.chosen === null ? null : items[state.chosen].track;
  const there = order.filter((index) => state.found.has(index) && (!isSameTrack || track === null || items[index].track === track));
  const from = there.indexOf(state.chosen);
  const next = from < 0 ? 0 : from + step;
  if (there[next] !== undefined) choose(there[next], { focus: true });
}

export function changeTrack(step) {
  if (state.chosen === null) return walk(1, false);
  const from = items[state.chosen];
  const middle = Math.max(from.start_s, Math.min(state.position ?? from.start_s, from.end_s));
  for (let number = from.track + step; number >= 0 && number < tracks.length; number += step) {
    const index = at(middle, number);
    if (index !== null) return choose(index, { focus: true });
  }
  return undefined;
}

// The address of the page tells what is chosen: an entry, and a factor.
function writeAddress() {
  const item = state.chosen === null ? "" : address(items[state.chosen]);
  const factor = state.factor ? `${item ? "&" : "#"}f=${encodeURIComponent(state.factor).replaceAll("%3A", ":")}` : "";
  history.replaceState(history.state, "", location.pathname + location.search + item + factor);
}

export function chooseFactor(id) {
  keepFactor(id);
  writeAddress();
  search();
}

export function followAddress() {
  const given = new URLSearchParams(location.hash.slice(1));
  const asked = given.has("e") || given.has("t") ? given : new URLSearchParams(location.search);
  if (given.has("f")) {
    keepFactor(given.get("f"));
    search();
  }
  const named = asked.get("e") ?? "";
  const index = byId.get(named);
  if (index !== undefined) return reveal(index);
  const seconds = asked.has("t") ? readTime(asked.get("t")) : null;
  if (seconds !== null) goTo(seconds, { write: false });
  if (named) tell(`This link leads to the entry ${named}, which is not shown at this head and through this view.`);
}

// An entry that is named is shown, also where a search or a track that is off hides it.
function reveal(index) {
  if (!state.found.has(index)) {
    state.query = dom.search.value = "";
    keepFactor("");
    state.hidden.clear();
    for (const label of dom.labels.querySelectorAll("button")) label.setAttribute("aria-pressed", "true");
    search();
  }
  choose(index, { block: "center", write: false });
}
