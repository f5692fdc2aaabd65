// What a page knows: its data, what stands in the list, what is chosen, and small helpers.

export const data = JSON.parse(document.getElementById("evicat-data").textContent);
export const inline = JSON.parse(document.getElementById("evicat-pictures")?.textContent ?? "{}");
export const entries = data.entries ?? [];
export const tracks = data.tracks ?? [];
export const makers = data.makers ?? [];
export const sentences = data.sentences ?? [];
export const duration = entries.reduce((most, entry) => Math.max(most, entry.end_s), data.duration_s || 0.001);
const TOLD = new Set(["failed", "refused", "stale", "partial", "no_frames", "pending"]);
export const byId = new Map(entries.map((entry, index) => [entry.entry_id, index]));

// A player sets this: it is called with the seconds of what was chosen.
export const hooks = { onSeek: () => {} };

// What stands in the list: entries, then stretches that have something to tell.
export const items = entries.map((entry, index) => ({ ...entry, index, isEntry: true }));
tracks.forEach((track, number) => {
  for (const stretch of track.stretches ?? []) {
    if (!TOLD.has(stretch.outcome)) continue;
    stretch.item = items.length;
    items.push({ ...stretch, track: number, index: items.length, isEntry: false });
  }
});
for (const [number, track] of tracks.entries()) track.items = items.filter((item) => item.isEntry && item.track === number);
export const order = items.map((item) => item.index);
order.sort((a, b) => items[a].start_s - items[b].start_s || items[b].end_s - items[a].end_s || items[a].track - items[b].track);

export const state = { chosen: null, position: null, query: "", factor: "", hidden: new Set(), zoom: 1, found: new Set(order) };
const get = (id) => document.getElementById(id);
export const dom = Object.fromEntries(
  ["told", "search", "factor", "factor-field", "goto", "theme", "help", "count", "where", "labels", "scroll", "axis", "legend", "list", "nothing",
    "details", "keys", "about", "zoom-in", "zoom-out", "zoom-all"].map((id) => [id, get(id)]),
);

export function make(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in made && name !== "list") made[name] = value;
    else made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export function clock(seconds, digits = 1) {
  const unit = 10 ** digits;
  const whole = Math.round(seconds * unit);
  const minutes = Math.floor(whole / (60 * unit));
  const rest = ((whole - minutes * 60 * unit) / unit).toFixed(digits).padStart(digits ? digits + 3 : 2, "0");
  const hours = Math.floor(minutes / 60);
  return hours ? `${hours}:${String(minutes % 60).padStart(2, "0")}:${rest}` : `${minutes}:${rest}`;
}

export function exactClock(seconds) {
  const text = clock(seconds, 3);
  return text.split(":").length === 2 ? `0:${text.padStart(9, "0")}` : text;
}

export function readTime(text) {
  const parts = text.trim().split(":");
  if (!parts.length || parts.length > 3 || !parts.every((part) => /^\d+(\.\d*)?$/.test(part))) return null;
  return parts.reduce((sum, part) => sum * 60 + Number(part), 0);
}

export const words = (name) => name.replaceAll("_", " ");
export const slug = (name) => name.replaceAll(" ", "-");
export const address = (item) => (item.isEntry ? `#e=${encodeURIComponent(item.entry_id)}` : `#t=${item.start_s}`);

// Pictures

export function pictureUrl(entry, index) {
  if (data.pictures?.base) return `${data.pictures.base}${encodeURIComponent(entry.entry_id)}/${index}.jpg${data.pictures.query ?? ""}`;
  const encoded = inline.by_pts?.[entry.frames[index].pts];
  return encoded ? `data:image/jpeg;base64,${encoded}` : null;
}

export function picture(entry, index, properties = {}) {
  const url = pictureUrl(entry, index);
  const alt = `Frame at ${clock(entry.frames[index].time_s)}`;
  const lazy = data.pictures?.base ? { loading: "lazy" } : {};
  return url ? make("img", { alt, decoding: "async", ...lazy, ...properties, src: url }) : null;
}

export function cover(entry) {
  const count = entry.frames?.length ?? 0;
  const boxed = (entry.frames ?? []).findIndex((frame) => boxesAt(entry, frame).length);
  const tried = [...(boxed >= 0 ? [boxed] : []), count >> 1, ...Array(count).keys()];
  return tried.find((index) => index < count && pictureUrl(entry, index));
}

export function boxesAt(entry, frame) {
  return (entry.boxes ?? []).filter((box) => Math.abs(box.time_s - frame.time_s) < 0.0005);
}
