// The tracks on one time axis.

import {
  byId, clock, cover, data, dom, duration, entries, items, make, picture, pictureUrl, slug, state, tracks,
  words,
} from "./page_model.js";
import { search } from "./page_list.js";

const LANE = { narrative: 40, local: 28, "screen text": 18, boxes: 18, strip: 58, ruler: 20 };
const MOST_ZOOM = 800;
const PIXELS_A_SECOND = 1000;
const NARROW = 4;

const lanes = [];

export function buildLanes() {
  const strip = items.some((item) => item.isEntry && cover(item) !== undefined);
  const add = (name, label, kind, note, height) => {
    const lane = make("div", { className: `lane lane-${slug(kind)}` });
    lane.style.height = `${height}px`;
    label.style.height = `${height}px`;
    label.title = note ?? "";
    dom.axis.append(lane);
    dom.labels.append(label);
    return lane;
  };
  const plain = (text) => make("span", { className: "label", textContent: text });
  lanes.ruler = add("ruler", plain(""), "ruler", "", LANE.ruler);
  if (strip) lanes.strip = add("strip", plain("Frames"), "strip", "Frames that were really shown to describers", LANE.strip);
  tracks.forEach((track, number) => {
    const label = make("button", { type: "button", className: `label kind-${slug(track.kind)}`, "aria-pressed": "true" },
      make("span", { className: "name", textContent: track.label }), make("small", { textContent: track.note ?? "" }));
    label.addEventListener("click", () => {
      state.hidden.has(number) ? state.hidden.delete(number) : state.hidden.add(number);
      label.setAttribute("aria-pressed", String(!state.hidden.has(number)));
      search();
    });
    const about = `${track.label}${track.note ? `, ${track.note}` : ""}. Click to leave it out of the list.`;
    if (track.marks) label.disabled = true;
    lanes.push(add(track.name, label, track.kind, track.marks ? track.note : about, LANE[track.kind] ?? 24));
  });
  dom.cursor = make("div", { className: "cursor", hidden: true });
  dom.axis.append(dom.cursor);
}

export function drawLanes() {
  const width = Math.max(1, dom.scroll.clientWidth * state.zoom);
  dom.axis.style.width = `${width}px`;
  const scale = width / duration;
  const from = (dom.scroll.scrollLeft - 200) / scale;
  const to = (dom.scroll.scrollLeft + dom.scroll.clientWidth + 200) / scale;
  const isSeen = (each) => each.end_s >= from && each.start_s <= to;
  lanes.ruler.replaceChildren(...ticks(from, to, scale));
  lanes.strip?.replaceChildren(...thumbnails(scale, width, isSeen));
  tracks.forEach((track, number) => {
    const drawn = (track.stretches ?? []).filter((each) => each.outcome !== "partial" && isSeen(each)).map((each) => stretch(each, track));
    const marks = track.marks ?? track.items.map((item) => ({ start_s: item.start_s, end_s: item.end_s, entry: item.index, text: item.text }));
    lanes[number].replaceChildren(...drawn, ...placed(marks.filter(isSeen), scale));
  });
  markLanes();
  dom.where.textContent = state.zoom > 1 ? `${clock(Math.max(0, from + 200 / scale))} to ${clock(Math.min(duration, to - 200 / scale))} of ${clock(duration)}` : `Whole video, ${clock(duration)}`;
  placeCursor();
}

// Marks that are too narrow to be told apart are one run, as long as nothing lies between them.
function placed(marks, scale) {
  const made = [];
  let run = null;
  const end = () => run && made.push(run.count > 1 ? runOf(run) : place(run, scale));
  for (const mark of marks) {
    const width = (mark.end_s - mark.start_s) * scale;
    const isFound = state.found.has(mark.entry);
    if (width >= NARROW || mark.end_s <= mark.start_s) {
      made.push(place(mark, scale));
    } else if (run && run.isFound === isFound && (mark.start_s - run.end_s) * scale < 1.5) {
      run.end_s = Math.max(run.end_s, mark.end_s);
      run.count += 1;
    } else {
      end();
      run = { ...mark, isFound, count: 1 };
    }
  }
  end();
  return made;
}

function runOf(run) {
  const made = make("div", { className: `mark run${run.isFound ? "" : " dim"}`, title: `${run.count} entries, ${clock(run.start_s)} to ${clock(run.end_s)}` });
  return lay(made, run, 2);
}

function place(mark, scale) {
  const item = items[mark.entry];
  const isPoint = mark.end_s <= mark.start_s;
  const width = (mark.end_s - mark.start_s) * scale - 1;
  const isFound = state.found.has(item.index);
  const names = ["mark", isPoint ? "point" : width < NARROW ? "run" : "", item.flags?.length ? "flagged" : "", isFound ? "" : "dim"];
  const made = make("div", { className: names.filter(Boolean).join(" "), title: `${clock(mark.start_s)}  ${mark.text.slice(0, 300)}` });
  made.dataset.index = item.index;
  if (width > 40 && isFound) made.textContent = mark.text.slice(0, Math.ceil(width / 4));
  return lay(made, mark, 2);
}

// In parts of the axis, so that it fits on paper too.
function lay(made, span, least) {
  made.style.left = `${(span.start_s / duration) * 100}%`;
  made.style.width = `max(${least}px, ${((span.end_s - span.start_s) / duration) * 100}% - 1px)`;
  return made;
}

// The chosen entry, wherever it has a mark.
export function markLanes() {
  for (const mark of dom.axis.querySelectorAll(".ring")) mark.remove();
  if (state.chosen === null) return;
  const item = items[state.chosen];
  lanes[item.track].append(lay(make("div", { className: "ring" }), item, 4));
  tracks.forEach((track, number) => {
    for (const mark of track.marks ?? []) {
      if (mark.entry === state.chosen) lanes[number].append(lay(make("div", { className: "ring" }), mark, 4));
    }
  });
}

function stretch(each, track) {
  const why = [each.error_class, each.message].filter(Boolean).join(": ");
  const made = make("div", { className: `stretch outcome-${each.outcome}${each.item === undefined || state.found.has(each.item) ? "" : " dim"}`, title: `${clock(each.start_s)}  ${track.label}: ${words(each.outcome)}${why ? `, ${why}` : ""}` });
  if (each.item !== undefined) made.dataset.index = each.item;
  return lay(made, each, 4);
}

function ticks(from, to, scale) {
  const steps = [0.1, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600];
  const step = steps.find((each) => each * scale >= 76) ?? 7200;
  const made = [];
  for (let number = Math.max(0, Math.floor(from / step)); number * step <= Math.min(to, duration); number += 1) {
    const fits = (duration - number * step) * scale > 40;
    const tick = make("span", { className: "tick", textContent: fits ? clock(number * step, step < 1 ? 1 : 0) : "" });
    tick.style.left = `${((number * step) / duration) * 100}%`;
    made.push(tick);
  }
  return made;
}

let cited = null;

function thumbnails(scale, width, isSeen) {
  cited ??= entries.flatMap((entry) => (entry.frames ?? []).map((frame, index) => ({ time_s: frame.time_s, entry, index })))
    .filter((each) => pictureUrl(each.entry, each.index)).sort((a, b) => a.time_s - b.time_s);
  const ratio = data.width && data.height ? data.width / data.height : 16 / 9;
  const broad = Math.min(120, Math.max(30, Math.round((LANE.strip - 6) * ratio)));
  const made = [];
  let free = 0;
  for (const each of cited) {
    const left = Math.min(Math.max(0, each.time_s * scale - broad / 2), width - broad);
    if (left < free) continue;
    free = left + broad + 4;
    if (!isSeen({ start_s: each.time_s, end_s: each.time_s })) continue;
    each.image ??= picture(each.entry, each.index, { title: clock(each.time_s), alt: "" });
    const image = each.image;
    image.style.left = `${(left / width) * 100}%`;
    image.style.width = `${broad}px`;
    image.dataset.index = byId.get(each.entry.entry_id);
    made.push(image);
  }
  return made;
}

export function placeCursor() {
  const seconds = state.position;
  dom.cursor.hidden = seconds === null;
  if (seconds !== null) dom.cursor.style.left = `${(seconds / duration) * 100}%`;
}

export function zoomTo(zoom, middle = null) {
  const scroll = dom.scroll;
  const half = scroll.clientWidth / 2;
  const focus = middle ?? ((scroll.scrollLeft + half) / dom.axis.offsetWidth) * duration;
  state.zoom = Math.min(MOST_ZOOM, Math.max(1, zoom), Math.max(1, (duration * PIXELS_A_SECOND) / scroll.clientWidth));
  dom.axis.style.width = `${scroll.clientWidth * state.zoom}px`;
  scroll.scrollLeft = (focus / duration) * scroll.clientWidth * state.zoom - half;
  drawLanes();
}

export function zoomBy(factor) {
  const chosen = state.chosen === null ? null : (items[state.chosen].start_s + items[state.chosen].end_s) / 2;
  zoomTo(state.zoom * factor, chosen);
}

export function buildLegend() {
  const outcomes = new Set(tracks.flatMap((track) => (track.stretches ?? []).map((each) => each.outcome)).filter((each) => each !== "partial"));
  for (const outcome of outcomes) {
    dom.legend.append(make("li", {}, make("i", { className: `swatch outcome-${outcome}` }), make("b", { textContent: words(outcome) }), ` ${data.meanings.outcomes[outcome]}`));
  }
  if (entries.some((entry) => entry.flags?.length)) {
    dom.legend.append(make("li", {}, make("i", { className: "swatch flagged" }), make("b", { textContent: "flagged" }), " something about the entry is odd; its details say what"));
  }
}
