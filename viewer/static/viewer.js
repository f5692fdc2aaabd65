// What pages of the viewer do beside links and forms: choosing a state at once, keys, light and dark.

import { startTheme, toggleTheme } from "./page_theme.js";

function chooseAtOnce() {
  const form = document.querySelector("form.state");
  form?.classList.add("at-once");
  form?.addEventListener("change", () => form.requestSubmit());
}

// Where no frame stands for a hit, its kind stands there in words.
function hideBroken() {
  for (const picture of document.querySelectorAll(".moment img")) {
    const hide = () => { picture.hidden = true; };
    picture.addEventListener("error", hide);
    if (picture.complete && !picture.naturalWidth) hide();
  }
}

const links = () => [...document.querySelectorAll("a.moment, table.videos tbody th a, table.compare th a")];

function walk(step) {
  const all = links();
  const next = all[Math.min(Math.max(0, all.indexOf(document.activeElement) + step), all.length - 1)];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

const KEYS = {
  "/": () => (document.querySelector('main input[type="search"]') ?? document.querySelector(".ask input"))?.select(),
  t: toggleTheme,
  j: () => walk(1),
  k: () => walk(-1),
};

function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const isTyping = event.target.matches("input, select, textarea");
  if (isTyping && event.key === "Escape") event.target.blur();
  if (isTyping || !(event.key in KEYS)) return;
  event.preventDefault();
  KEYS[event.key]();
}

chooseAtOnce();
hideBroken();
if (!document.querySelector("article.video")) {
  startTheme();
  document.addEventListener("keydown", pressed);
  document.documentElement.dataset.ready = "true";
}
