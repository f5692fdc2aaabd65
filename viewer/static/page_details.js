// What is told of a chosen entry, or of a stretch without one.

import {
  address, boxesAt, clock, data, dom, exactClock, hooks, inline, items, make, makers, picture, pictureUrl,
  sentences, slug, tracks, words,
} from "./page_model.js";
import { choose } from "./page_choosing.js";

export function details(item) {
  const track = tracks[item.track];
  const maker = makers[track.maker];
  const head = make("header", {},
    make("h2", {}, make("span", { className: `chip kind-${slug(track.kind)}`, textContent: track.label }), ` ${clock(item.start_s)} to ${clock(item.end_s)}`),
    make("button", { type: "button", className: "close", textContent: "Close", title: "Close (Esc)", onclick: () => choose(null) }));
  if (!item.isEntry) return [head, ...gapDetails(item)];
  return [
    head,
    make("p", { className: "full", dir: "auto", textContent: item.text }),
    ...flagDetails(item),
    factorDetails(item),
    frameDetails(item),
    sentenceDetails(item),
    ...inverseDetails(item),
    recordDetails(item),
    makerDetails(maker),
    idDetails(item),
  ];
}

function gapDetails(item) {
  const told = [make("p", { className: "full" }, make("b", { textContent: words(item.outcome) }), `: ${data.meanings.outcomes[item.outcome]}.`)];
  const why = [item.error_class, item.message].filter(Boolean).join(": ");
  if (why) told.push(make("p", { className: "problem", textContent: why, dir: "auto" }));
  if (item.windows > 1) told.push(make("p", { textContent: `${item.windows} windows that follow each other ended so.` }));
  return [...told, makerDetails(makers[tracks[item.track].maker])];
}

function flagDetails(item) {
  return (item.flags ?? []).map((flag) => make("p", { className: "flagline" }, make("span", { className: "flag", textContent: words(flag) }), ` ${data.meanings.flags[flag] ?? ""}`));
}

function factorDetails(item) {
  if (!item.factors?.length) return null;
  return part("Factors", make("p", { className: "factors" }, ...item.factors.map((factor) => make("span", { className: "factor", textContent: factor }))));
}

function part(title, ...children) {
  return make("section", { className: "part" }, make("h3", { textContent: title }), ...children);
}

function frameDetails(item) {
  const frames = item.frames ?? [];
  if (!frames.length) return null;
  const figures = frames.map((frame, index) => figure(item, frame, index));
  const boxed = frames.findIndex((frame, index) => boxesAt(item, frame).length && pictureUrl(item, index));
  if (boxed >= 0) enlarge(figures[boxed]);
  const without = frames.filter((_, index) => !pictureUrl(item, index)).length;
  const note = inline.note && without ? make("p", { className: "note", textContent: inline.note }) : null;
  const size = item.shown_width ? ` at ${item.shown_width} × ${item.shown_height}` : "";
  return part(`${frames.length} frames shown${size}`, note, make("div", { className: "frames" }, ...figures), boxList(item));
}

function figure(item, frame, index) {
  const image = picture(item, index) ?? make("span", { className: "empty", textContent: "no picture here" });
  const boxes = boxesAt(item, frame);
  const stage = make("button", { type: "button", className: "stage", "aria-expanded": "false", title: "Larger or smaller" }, image, ...(image.tagName === "IMG" ? overlay(item, boxes) : []));
  const made = make("figure", {}, stage, make("figcaption", {}, make("b", { textContent: clock(frame.time_s), title: `${exactClock(frame.time_s)}` }), ` PTS ${frame.pts}${boxes.length ? `, ${boxes.length} box${boxes.length > 1 ? "es" : ""}` : ""}`));
  stage.addEventListener("click", () => {
    enlarge(made);
    hooks.onSeek(frame.time_s);
  });
  return made;
}

function enlarge(made) {
  made.firstChild.setAttribute("aria-expanded", String(made.classList.toggle("large")));
}

function overlay(item, boxes) {
  return boxes.flatMap((box) => {
    const number = item.boxes.indexOf(box) + 1;
    const frame = make("span", { className: box.y1 < 80 ? "box high" : "box", title: box.name }, make("span", { className: "tag", textContent: number }));
    Object.assign(frame.style, { left: `${box.x1 / 10}%`, top: `${box.y1 / 10}%`, width: `${(box.x2 - box.x1) / 10}%`, height: `${(box.y2 - box.y1) / 10}%` });
    return [frame];
  });
}

function boxList(item) {
  if (!item.boxes?.length) return null;
  const told = item.boxes.map((box) => make("li", {}, make("span", { textContent: box.name, dir: "auto" }),
    make("small", { textContent: ` at ${clock(box.time_s)}${box.source ? `, ${words(box.source)}` : ""}${box.confidence === undefined ? "" : `, confidence ${box.confidence.toFixed(2)}`}` })));
  return make("ol", { className: "boxes" }, ...told);
}

function entryLink(link) {
  const item = link.entry === undefined ? null : items[link.entry];
  const label = item ? tracks[item.track].label : link.kind;
  const score = link.score === undefined ? null : make("span", { className: "score", title: "1 is best" }, make("meter", { min: 0, max: 1, value: link.score, "aria-label": "score" }), link.score.toFixed(2));
  const told = [make("b", { textContent: clock(link.start_s ?? item.start_s) }), ` ${label} `, make("span", { dir: "auto", textContent: item ? item.text.slice(0, 160) : "(not shown by this view)" })];
  return make("li", {}, score, item ? make("a", { href: address(item) }, ...told) : make("span", {}, ...told));
}

function sentenceDetails(item) {
  const own = sentences.filter((each) => each.entry === item.index);
  if (!own.length) return null;
  const told = own.map((each) => make("li", {},
    make("p", {}, make("span", { className: `role role-${each.role}`, textContent: each.role, title: data.meanings.roles[each.role] }), " ", make("span", { dir: "auto", textContent: each.text })),
    each.rests_on?.length ? make("ul", { className: "links" }, ...each.rests_on.map(entryLink)) : make("p", { className: "note", textContent: "Nothing carries it." })));
  const roles = [...new Set(own.map((each) => each.role))].map((role) => `${role}: ${data.meanings.roles[role]}`).join("; ");
  return part("What each sentence rests on", make("p", { className: "note", textContent: `${roles}. Scores: 1 is best.` }), make("ol", { className: "sentences" }, ...told));
}

function inverseDetails(item) {
  const resting = sentences.flatMap((each) => (each.rests_on ?? []).filter((link) => link.entry === item.index)
    .map((link) => ({ entry: each.entry, score: link.score, text: each.text })));
  const told = resting.map((each) => {
    const made = entryLink({ entry: each.entry, score: each.score });
    made.querySelector("[dir]").textContent = each.text;
    return made;
  });
  const bases = (item.made_from ?? []).map((index) => entryLink({ entry: index }));
  const from = bases.length ? make("details", { className: "part" }, make("summary", { textContent: `Made from ${bases.length} ${bases.length > 1 ? "entries" : "entry"}` }), make("ul", { className: "links" }, ...bases)) : null;
  return [told.length ? part("Sentences that rest on this", make("ul", { className: "links" }, ...told)) : null, from];
}

function recordDetails(item) {
  const told = (item.record ?? []).flatMap(([label, values]) => [make("dt", { textContent: label }), make("dd", { dir: "auto" }, ...(values.length > 1 ? [make("ul", {}, ...values.map((value) => make("li", { textContent: value })))] : values))]);
  const spoken = (item.words ?? []).map(([start, text, probability]) => make("span", { className: `word${probability !== null && probability < 0.5 ? " unsure" : ""}`, title: `${exactClock(start)}${probability === null ? "" : `, probability ${probability}`}`, textContent: `${text} ` }));
  if (spoken.length) told.push(make("dt", { textContent: "words" }), make("dd", { dir: "auto" }, ...spoken));
  if (spoken.some((word) => word.classList.contains("unsure"))) told.push(make("dt", {}), make("dd", { className: "note", textContent: "Underlined words: the transcriber gives them less than one half." }));
  return told.length ? part("Record", make("dl", { className: "record" }, ...told)) : null;
}

function makerDetails(maker) {
  if (!maker) return null;
  const told = [["component", maker.component], ["model", [maker.model, maker.model_facts].filter(Boolean).join(", ")], ["reads", (maker.reads ?? ["the file"]).join(", ")], ["id", maker.producer_id]];
  const facts = told.filter(([, text]) => text).flatMap(([label, text]) => [make("dt", { textContent: label }), make("dd", { textContent: text })]);
  const options = maker.options ? make("details", {}, make("summary", { textContent: "Options of the recipe" }), make("pre", { textContent: maker.options, tabindex: "0" })) : null;
  return part("Producer", make("dl", { className: "record" }, ...facts), options);
}

export function citation(item) {
  return `${data.video} ${exactClock(item.start_s)}-${exactClock(item.end_s)} [${item.entry_id}], ${data.state}`;
}

function idDetails(item) {
  const link = new URL(address(item), location.href).href;
  const copies = [["Copy id", item.entry_id], ["Copy link", link], ["Copy citation", citation(item)]];
  const buttons = copies.map(([label, text]) => make("button", { type: "button", textContent: label, onclick: (event) => copy(text, event.target) }));
  return part("Entry", make("p", {}, make("code", { className: "id", textContent: item.entry_id })), make("p", { className: "copies" }, ...buttons));
}

export async function copy(text, button) {
  const label = button?.textContent;
  let told = "Copied";
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    told = "Marked: press Ctrl+C";
    const shown = make("code", { className: "id", textContent: text });
    dom.details.querySelector(".copies").after(shown);
    getSelection().selectAllChildren(shown);
  }
  if (!button) return;
  button.textContent = told;
  setTimeout(() => { button.textContent = label; }, 1600);
}
