// What a page does beside showing: it stays up to date, it is used by keys, and it changes its colours.
"use strict";

const byId = (id) => document.getElementById(id);

// ---- Staying up to date -------------------------------------------------------------------------------------------
// The gateway tells what it records. Whatever it is, the page is asked for again and its live parts are put in the place of
// the old ones: what is shown is always what the server drew from its ledger.

const WAIT_FIRST = 500;
const WAIT_MOST = 15000;
const REFRESH_EVERY = 1000;
const REFRESH_ANYWAY = 15000;

let last = null;
let wait = WAIT_FIRST;
let away = false;
let refreshing = null;
let again = false;

function say(words, state) {
  const line = byId("live");
  if (!line) return;
  line.textContent = words;
  line.dataset.state = state;
}

function connect() {
  const source = new EventSource("/api/live" + (last ? "?last=" + encodeURIComponent(last) : ""));
  const open = (event) => {
    last = event.lastEventId;
    wait = WAIT_FIRST;
    say(away ? "◉ Live again, and caught up" : "◉ Live", "live");
    if (away) refresh();
    away = false;
  };
  source.addEventListener("here", open);
  source.addEventListener("lost", (event) => {
    away = true;
    open(event);
  });
  source.addEventListener("fact", (event) => {
    last = event.lastEventId;
    refresh();
  });
  source.onerror = () => {
    source.close();
    away = true;
    say(`○ The gateway is away; trying again in ${Math.ceil(wait / 1000)} s`, "away");
    setTimeout(connect, wait);
    wait = Math.min(wait * 2, WAIT_MOST);
  };
}

// The page to ask for: after a form was sent, the one that it was on.
function home() {
  const [, place, part] = location.pathname.split("/");
  const sent = part && (byId("notice") || place === "playbook" || place === "ledger");
  return sent ? "/" + place : location.href;
}

// Asks for the page again, at most so often; what comes meanwhile is asked for once more.
function refresh() {
  if (refreshing) {
    again = true;
    return;
  }
  refreshing = setTimeout(async () => {
    again = false;
    await replaceParts();
    refreshing = null;
    if (again) refresh();
  }, REFRESH_EVERY);
}

async function replaceParts() {
  let text;
  try {
    const answer = await fetch(home(), { headers: { accept: "text/html" }, credentials: "same-origin" });
    if (answer.status === 401) {
      say("○ Signed out; load the page again", "away");
      return;
    }
    if (!answer.ok) return;
    text = await answer.text();
  } catch {
    return;
  }
  const fresh = new DOMParser().parseFromString(text, "text/html");
  for (const old of document.querySelectorAll("[data-live][id]")) {
    const next = fresh.getElementById(old.id);
    if (next && !isUsed(old) && old.innerHTML !== next.innerHTML) old.replaceChildren(...next.childNodes);
  }
}

// Nobody's words and nobody's place are taken away.
function isUsed(part) {
  if (part.contains(document.activeElement) && document.activeElement !== part) return true;
  const written = (field) => field.type !== "hidden" && field.value !== field.defaultValue;
  return [...part.querySelectorAll("input:not([type=checkbox]), textarea")].some(written);
}

// ---- Keys -----------------------------------------------------------------------------------------------------------

function rows() {
  return [...document.querySelectorAll("[data-row]")];
}

function move(by) {
  const all = rows();
  if (all.length === 0) return;
  const now = all.findIndex((row) => row.contains(document.activeElement));
  const next = now < 0 ? (by > 0 ? 0 : all.length - 1) : Math.min(Math.max(now + by, 0), all.length - 1);
  all[next].focus();
  all[next].scrollIntoView({ block: "nearest" });
}

function current() {
  const all = rows();
  return all.find((row) => row.contains(document.activeElement)) ?? all[0];
}

document.addEventListener("keydown", (event) => {
  const writes = event.target.closest("input, textarea, select");
  if (writes || event.ctrlKey || event.altKey || event.metaKey) return;
  switch (event.key) {
    case "j":
      return move(1);
    case "k":
      return move(-1);
    case "Enter":
      // A button or a link that has the focus does what it does.
      if (event.target.matches("[data-row]")) event.target.querySelector("a[href]")?.click();
      return;
    case "a":
    case "d":
      // The key leads to the button, and Enter presses it: nothing is approved by one key.
      event.preventDefault();
      return current()?.querySelector(`button[data-key="${event.key}"]`)?.focus();
    case "?":
      return byId("keys")?.showModal();
  }
});

// ---- Colours --------------------------------------------------------------------------------------------------------

const theme = byId("theme");
if (theme) {
  theme.hidden = false;
  theme.addEventListener("click", () => {
    const root = document.documentElement;
    const dark = root.dataset.theme
      ? root.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    try {
      localStorage.setItem("amends-theme", root.dataset.theme);
    } catch {
      // It is kept for this page alone then.
    }
  });
}

if (byId("live")) {
  connect();
  setInterval(() => document.visibilityState === "visible" && refresh(), REFRESH_ANYWAY);
}
