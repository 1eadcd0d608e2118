// One stream a page tells what has changed; what shows it asks for itself anew (htmx: `changed:jobs from:body`).
// Nothing is asked for while somebody is in the middle of something, and nobody is told "live" who is not.

const TOPICS = ["definitions", "executions", "workers", "time"]; // time: nothing else has changed for a while
const SILENCE_MS = 25_000; // two beats and a half
const POLL_MS = [3_000, 60_000]; // without a stream: soon, and then more and more seldom
const BEGUN = "dialog[open], .menu[open], .pick:checked";
const BUSY = `${BEGUN}, [data-hold]:hover, [data-hold]:has(:focus-visible)`;

const button = document.getElementById("live");
const word = button.querySelector(".live-word");
const clock = new Intl.DateTimeFormat("en-GB", { timeStyle: "short", timeZone: document.documentElement.dataset.zone });
const serverAhead = Date.parse(document.documentElement.dataset.now) - Date.now();

let source = null;
let heardAt = Date.now();
let lost = false;
let paused = false;
const changed = new Set();

// --- what has changed is told to the page, at once or when its user is free

function tell(topics) {
  for (const topic of topics) changed.add(topic);
  if (!isBusy()) tellNow();
}

function tellNow() {
  const topics = [...changed];
  changed.clear();
  for (const topic of topics) document.body.dispatchEvent(new CustomEvent(`changed:${topic}`));
}

function isBusy() {
  return paused || document.querySelector(BUSY) || selectsText();
}

function selectsText() {
  const selection = getSelection();
  return !selection.isCollapsed && document.getElementById("main").contains(selection.anchorNode);
}

// What was asked for while nobody did anything, and comes when a menu is open or rows are selected, would close the
// one and forget the others: it is put aside, and asked for anew when its user is free.
document.addEventListener("htmx:before:swap", (event) => {
  const topics = event.detail.ctx.sourceElement?.getAttribute("hx-trigger")?.match(/(?<=changed:)\w+/g);
  if (!topics || !document.querySelector(BEGUN)) return;
  event.preventDefault();
  for (const topic of topics) changed.add(topic);
});

// --- the stream, open while the page is seen: a browser has six connections to a server for all its tabs

function open() {
  if (source || document.hidden) return;
  source = new EventSource("/ui/events");
  source.addEventListener("open", hear);
  source.addEventListener("beat", () => (hear(), tell(["time"])));
  source.addEventListener("changed", ({ data }) => (hear(), tell(data.split(" "))));
  source.addEventListener("error", () => {
    lost = true;
    if (source?.readyState === EventSource.CLOSED) close(); // refused, not interrupted: `tick` tries again
    show();
  });
}

function close() {
  source?.close();
  source = null;
}

function hear() {
  heardAt = Date.now();
  lost = false;
  show();
}

document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
addEventListener("pagehide", close);
document.addEventListener("htmx:after:request", ({ detail }) => detail.ctx.response.status < 400 && hear());
document.addEventListener("done", () => (TOPICS.forEach((topic) => changed.add(topic)), tellNow()));

// --- how it stands

function show() {
  const stale = Date.now() - heardAt > SILENCE_MS;
  const held = changed.size > 0 && isBusy(); // something has changed that is not shown yet
  const state = paused || held ? "paused" : stale ? "stale" : lost ? "reconnecting" : "live";
  if (button.dataset.state === state && state !== "stale") return;
  button.dataset.state = state;
  word.textContent = { live: "Live", paused: "Paused", reconnecting: "Reconnecting", stale: `Stale since ${clock.format(heardAt + serverAhead)}` }[state];
}

button.addEventListener("click", () => {
  paused = !paused;
  show();
  if (!paused) tell(TOPICS);
});

// --- once a second: relative times go on, and what was held back is told

const UNITS = [[86_400, "d"], [3_600, "h"], [60, "min"], [1, "s"]];

function relative(seconds) {
  if (Math.abs(seconds) < 1) return "now";
  const [size, unit] = UNITS.find(([size]) => Math.abs(seconds) >= size);
  const count = Math.floor(Math.abs(seconds) / size);
  return seconds > 0 ? `in ${count} ${unit}` : `${count} ${unit} ago`;
}

function tick() {
  const now = Date.now() + serverAhead;
  for (const time of document.querySelectorAll("time[data-relative]")) {
    const seconds = (Date.parse(time.dateTime) - now) / 1000;
    if (Math.abs(seconds) >= 30 * 86_400) continue; // the date stands there
    const text = relative(seconds);
    if (time.textContent !== text) time.textContent = text;
  }
  if (changed.size && !isBusy()) tellNow();
  show();
}

function poll(afterMs) {
  setTimeout(() => {
    const streams = source?.readyState === EventSource.OPEN;
    if (!streams && !document.hidden) {
      open();
      if (lost) tell(TOPICS);
    }
    poll(streams ? POLL_MS[0] : Math.min(2 * afterMs, POLL_MS[1]));
  }, afterMs);
}

setInterval(tick, 1000);
poll(POLL_MS[0]);
open();
