// The player of a video page: an entry that is chosen moves it, and the timeline and list follow it.

import "./viewer.js";
import { hooks, setPosition } from "./page.js";
import { clock, items, readTime, state } from "./page_model.js";

const player = document.getElementById("player");
const RESTS_MS = 4000;

// Second 0 of the catalog's timeline lies at this second of the player's.
const offset = Number(player?.dataset.offset ?? 0);

function seek(seconds) {
  const to = Math.max(0, seconds + offset);
  if (player.readyState >= HTMLMediaElement.HAVE_METADATA) player.currentTime = to;
  else player.addEventListener("loadedmetadata", () => { player.currentTime = to; }, { once: true });
}

// Where the page begins: at the second that its address names, or at the entry that it has chosen.
function beginning() {
  const given = [location.hash.slice(1), location.search].map((text) => new URLSearchParams(text));
  const asked = given.find((each) => each.has("e") || each.has("t"));
  if (asked?.has("t") && !asked.has("e")) return readTime(asked.get("t"));
  return state.chosen === null ? null : items[state.chosen].start_s;
}

let touched = -RESTS_MS;

function follow() {
  setPosition(player.currentTime - offset);
  if (player.paused || performance.now() - touched < RESTS_MS) return;
  const now = [...document.querySelectorAll("#list .row.now:not([hidden])")].at(-1);
  now?.scrollIntoView({ block: "nearest" });
}

function tellUnplayable() {
  player.hidden = true;
  document.getElementById("unplayable").hidden = false;
  hooks.onSeek = showStill;
  showStill(beginning() ?? 0);
}

// Where the browser cannot play: the frame that was shown to a describer nearest to a time.
function showStill(seconds) {
  const still = document.getElementById("still");
  const { stills, query } = document.getElementById("stage").dataset;
  still.onload = () => { still.hidden = false; };
  still.onerror = () => { still.hidden = true; };
  still.alt = `Frame shown nearest to ${clock(seconds)}`;
  still.src = `${stills}${Math.round(seconds * 1000)}.jpg${query}`;
}

function listen() {
  hooks.onSeek = seek;
  for (const name of ["timeupdate", "seeking", "seeked"]) player.addEventListener(name, follow);
  player.addEventListener("error", tellUnplayable);
  if (player.error) tellUnplayable();  // it may have failed before this script began
  for (const name of ["wheel", "pointerdown", "keydown"]) {
    document.getElementById("list").addEventListener(name, () => { touched = performance.now(); }, { passive: true });
  }
  document.addEventListener("keydown", (event) => {
    if (event.key !== "p" || event.target.matches("input, select, textarea") || event.ctrlKey || event.metaKey) return;
    if (player.paused) player.play();
    else player.pause();
  });
}

if (player) {
  listen();
  const start = beginning();
  if (start !== null) hooks.onSeek(start);
}
document.documentElement.dataset.player = "ready";
