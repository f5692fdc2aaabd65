// The page of one video: timeline, list, details. Reads #evicat-data, and pictures from #evicat-pictures or,
// where the data names their address, from a server. Texts are untrusted: they are only ever set as text.

import { dom, duration, hooks, items, readTime, state } from "./page_model.js";
import { buildFactors, buildList, drawList, fill, search, sections } from "./page_list.js";
import { buildLanes, buildLegend, drawLanes, zoomBy, zoomTo } from "./page_timeline.js";
import { citation, copy } from "./page_details.js";
import { changeTrack, choose, chooseFactor, followAddress, goTo, setPosition, showHint, walk } from "./page_choosing.js";
import { startTheme, toggleTheme } from "./page_theme.js";

export { hooks, setPosition };

const KEYS = {
  ArrowRight: () => walk(1, true),
  ArrowLeft: () => walk(-1, true),
  ArrowDown: () => changeTrack(1),
  ArrowUp: () => changeTrack(-1),
  j: () => walk(1, false),
  k: () => walk(-1, false),
  "/": () => dom.search.focus(),
  f: () => dom.factor.focus(),
  g: () => dom.goto.focus(),
  "+": () => zoomBy(2),
  "=": () => zoomBy(2),
  "-": () => zoomBy(0.5),
  0: () => zoomTo(1),
  t: () => toggleTheme(),
  c: () => state.chosen !== null && items[state.chosen].isEntry && copy(citation(items[state.chosen]), [...dom.details.querySelectorAll(".copies button")].at(-1)),
  "?": () => dom.keys.showModal(),
};

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || dom.keys.open) return;
  const isTyping = event.target.matches("input, textarea, select, video");
  if (event.key === "Escape") {
    if (isTyping && dom.search.value) type("");
    else if (isTyping) event.target.blur();
    else if (state.chosen !== null) choose(null);
    return;
  }
  const isArrow = event.key.startsWith("Arrow");
  if (isTyping || !(event.key in KEYS) || (isArrow && dom.details.contains(event.target))) return;
  event.preventDefault();
  KEYS[event.key]();
}

function type(text) {
  state.query = dom.search.value = text;
  search();
}

function setPrinting(isPrinting) {
  state.isPrinting = isPrinting;
  drawList();
}

let waiting = 0;

function soon(work) {
  cancelAnimationFrame(waiting);
  waiting = requestAnimationFrame(work);
}

function listen() {
  let typing = 0;
  dom.search.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(() => type(dom.search.value), 80);
  });
  dom.search.addEventListener("keydown", (event) => event.key === "Enter" && (type(dom.search.value), walk(0, false)));
  dom.factor.addEventListener("change", () => chooseFactor(dom.factor.value));
  dom.goto.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    const seconds = readTime(dom.goto.value);
    dom.goto.setCustomValidity(seconds === null ? "Write 12:30, 1:02:03 or seconds" : "");
    dom.goto.reportValidity();
    if (seconds !== null) goTo(seconds, { focus: true });
  });
  dom.goto.addEventListener("input", () => dom.goto.setCustomValidity(""));
  dom.axis.addEventListener("click", (event) => {
    const index = event.target.dataset.index;
    if (index !== undefined) return choose(Number(index), { block: "center" });
    return goTo(((event.clientX - dom.axis.getBoundingClientRect().left) / dom.axis.offsetWidth) * duration);
  });
  document.addEventListener("click", (event) => {
    const row = event.target.closest?.(".row");
    if (!row || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    choose(Number(row.dataset.index), { focus: true });
  });
  dom.scroll.addEventListener("scroll", () => soon(drawLanes));
  dom["zoom-in"].addEventListener("click", () => zoomBy(2));
  dom["zoom-out"].addEventListener("click", () => zoomBy(0.5));
  dom["zoom-all"].addEventListener("click", () => zoomTo(1));
  dom.help.addEventListener("click", () => dom.keys.showModal());
  document.addEventListener("keydown", pressed);
  addEventListener("hashchange", followAddress);
  addEventListener("resize", () => soon(drawLanes));
  addEventListener("beforeprint", () => {
    zoomTo(1);
    dom.about.open = true;
    setPrinting(true);
    sections.forEach(fill);
  });
  addEventListener("afterprint", () => setPrinting(false));
}

startTheme();
buildLanes();
buildLegend();
buildFactors();
buildList();
showHint();
search();
listen();
followAddress();
document.documentElement.dataset.ready = "true";
