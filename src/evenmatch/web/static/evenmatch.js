// Live updates, charts and forms of the pages. Without JavaScript the pages show the same, except the charts of the lab.
//
// <body data-here="URL">           the URL of this page, from which its regions are reloaded
// <body data-now="…">              the service's clock when the page was rendered, in milliseconds
// <body data-texts="{…}">          the texts of this script, in the language of the page
// <body data-pulse="URL">          the stream of server-sent events `ladder` and `queue`
// <… id data-live="ladder queue">  a region that is reloaded after these events
// <… id data-every="2">            a region that is reloaded every n seconds, as long as it has this attribute
// <… data-background>              a region that is reloaded in a hidden tab, too
// <… data-title="…">               the document title while this element is on the page
// <… data-alert data-alert-words>  a new value plays a sound and, if permitted, shows a notification
// <… data-focus="key">             takes the focus when the page opens and when a reload brings another key
// <button data-notify>             requests the permission for notifications
// <time>                           shows the time in the visitor's time zone and format
// <time data-ago>                  shows the time that has passed since then
// <figure data-points>             a chart: the place of each point in units of its plot, and what is told of it
// <form data-redraw="id">          submits itself when a value changes, and shows the response in this region
// <select data-choose="id">        reloads this region with the fields that belong to the selected option
// <… data-of="id">                 is removed when the form of that region changes
// <tr data-key data-value>         a row that is highlighted for a moment when its value has changed

const SETTLE = 250; // milliseconds after the last change of a slider
const SOON = 5000; // milliseconds: the longest retry delay of the stream on the page of a waiting player
const AGAIN = [2000, 60_000]; // milliseconds until a lost stream is retried: first and longest delay
const GATHER = 400; // milliseconds in which further events are handled together

const texts = JSON.parse(document.body.dataset.texts);
const { lang } = document.documentElement;
const plurals = new Intl.PluralRules(lang);
const fill = (forms, n) => (forms[plurals.select(n)] ?? forms.other ?? forms).replace("{}", n);

const regions = (selector, within = document) => [...within.querySelectorAll(selector)].filter((region) => region.id);

// Charts: what is told of the point that is pointed at, or that the arrow keys have reached

const chartAt = (target) => target.closest?.(".chart .plot")?.parentElement;
const pointsOf = (chart) => (chart.dataset.points ? chart.dataset.points.split("\n") : []).map((line) => {
  const [, x, y, words] = line.match(/^(\d+) (\d+) (.*)$/);
  return { x: x / 20, y: y / 10, words };
});
let pointed = null;

function tellPoint(chart, point) {
  if (pointed && pointed !== chart) tellPoint(pointed, null);
  pointed = point && chart;
  chart.querySelector("output").textContent = point?.words ?? "";
  const cursor = chart.querySelector(".cursor");
  for (const [name, value] of [["cx", point?.x], ["cy", point?.y]]) {
    if (point) cursor.setAttribute(name, `${value}%`);
    else cursor.removeAttribute(name);
  }
}

function pointAt({ target, clientX, clientY }) {
  const chart = chartAt(target);
  if (!chart) {
    if (pointed && !pointed.contains(document.activeElement)) tellPoint(pointed, null);
    return;
  }
  const box = chart.querySelector("svg").getBoundingClientRect();
  const distance = ({ x, y }) =>
    Math.hypot(box.left + (x / 100) * box.width - clientX, (box.top + (y / 100) * box.height - clientY) / 50);
  const nearest = pointsOf(chart).reduce((best, point) => (!best || distance(point) < distance(best) ? point : best), null);
  tellPoint(chart, nearest);
}

function stepPoint(event) {
  const chart = chartAt(event.target);
  const points = chart ? pointsOf(chart) : [];
  const words = chart?.querySelector("output").textContent;
  const at = points.findIndex((point) => point.words === words);
  const next = { ArrowLeft: (at < 0 ? points.length : at) - 1, ArrowRight: at + 1, Home: 0, End: points.length - 1 }[event.key];
  if (event.key === "Escape" && words) tellPoint(chart, null);
  if (!points[next]) return;
  event.preventDefault();
  tellPoint(chart, points[next]);
}

addEventListener("pointermove", pointAt);
addEventListener("pointerdown", pointAt);
addEventListener("keydown", stepPoint);
addEventListener("focusout", ({ target }) => { if (chartAt(target)) tellPoint(chartAt(target), null); });

// Regions: new content is merged into the existing elements, so that focus, scroll position and pressed buttons stay

const KEYED = new Set(["A", "BUTTON", "INPUT", "SELECT", "OPTION"]);

function keyOf(node) {
  if (node.nodeType !== Node.ELEMENT_NODE) return null;
  if (node.id) return `#${node.id}`;
  if (node.dataset.key !== undefined) return `=${node.dataset.key}`;
  if (!KEYED.has(node.tagName)) return null;
  return ["name", "value", "href"].map((name) => node.getAttribute(name)).join("\n");
}

const isAlike = (a, b) => a.nodeType === b.nodeType && a.nodeName === b.nodeName && keyOf(a) === keyOf(b);

function mark(row, before, after) {
  row.classList.remove("rose", "fell", "changed");
  row.getBoundingClientRect(); // forces a reflow, so that the animation restarts
  row.classList.add(Number(after) < Number(before) ? "fell" : Number(after) > Number(before) ? "rose" : "changed");
}

function syncAttributes(old, fresh) {
  const before = old.dataset.value;
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && name !== "open" && name !== "class") old.removeAttribute(name);
  }
  for (const { name, value } of [...fresh.attributes]) {
    if (old.getAttribute(name) !== value && name !== "open") old.setAttribute(name, value);
  }
  if (!fresh.hasAttribute("class")) old.classList.remove("mine");
  if (old.dataset.key !== undefined && before !== old.dataset.value) mark(old, before, old.dataset.value);
}

function morph(old, fresh) {
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  if (old.nodeType !== Node.ELEMENT_NODE) return;
  syncAttributes(old, fresh);
  if (old.matches(".figure")) return; // the chart library owns the content
  const keyed = new Map(); // nodes by key, in order: keys may repeat
  for (const node of [...old.childNodes].filter(keyOf)) keyed.set(keyOf(node), [...(keyed.get(keyOf(node)) ?? []), node]);
  const wasFull = keyed.size > 0;
  let position = old.firstChild;
  for (const next of [...fresh.childNodes]) {
    const key = keyOf(next);
    const known = key === null ? position : keyed.get(key)?.shift();
    if (known && isAlike(known, next)) {
      if (known === position) position = position.nextSibling;
      else old.insertBefore(known, position);
      morph(known, next);
    } else {
      old.insertBefore(next, position);
      if (wasFull && next.dataset?.key !== undefined) next.classList.add("rose");
    }
  }
  while (position) {
    const removed = position;
    position = position.nextSibling;
    removed.remove();
  }
}

let pressed = false;
addEventListener("pointerdown", () => { pressed = true; }, true);
for (const end of ["pointerup", "pointercancel", "blur"]) addEventListener(end, () => { pressed = false; }, true);

function swap(old, fresh) {
  const focused = old.contains(document.activeElement) ? document.activeElement : null;
  const key = focused && keyOf(focused);
  morph(old, fresh);
  old.dispatchEvent(new Event("swapped", { bubbles: true })); // lab.js draws its charts
  if (focused && document.activeElement !== focused && key) {
    [...old.querySelectorAll(focused.tagName)].find((node) => keyOf(node) === key)?.focus({ preventScroll: true });
  }
}

// New rows of a list wait for a click, so that nothing moves while it is read

const rowsOf = (region) => [...region.querySelectorAll("[data-key]")].map((row) => row.dataset.key);

function swapOrHold(old, fresh) {
  const known = new Set(rowsOf(old));
  const news = rowsOf(fresh).filter((key) => !known.has(key)).length;
  const button = old.querySelector(".held > button");
  if (!button || !news || !known.size) {
    swap(old, fresh);
    return;
  }
  button.textContent = fill(texts.show, news);
  button.hidden = false;
  button.onclick = () => {
    swap(old, fresh);
    old.querySelector("[data-key] a")?.focus({ preventScroll: true });
  };
}

const PART = "X-Evenmatch-Part";
const tags = {}; // the tag of the content of each region that was reloaded

function fetchRegions(url, ids, known = {}) {
  return fetch(url, { credentials: "same-origin", headers: { [PART]: ids.map((id) => `${id}=${known[id] ?? ""}`).join(" ") } });
}

async function fetchPage(url, ids) {
  const answer = await fetchRegions(url, ids, tags);
  if (answer.redirected && new URL(answer.url).pathname !== new URL(url, location.href).pathname) {
    location.assign(answer.url); // for example to the login page
    return;
  }
  if (answer.status === 204) return; // nothing has changed
  if (answer.headers.get("Content-Language") !== lang) { // chosen in another tab
    location.reload();
    return;
  }
  const page = parsed(await answer.text());
  while (pressed) await new Promise((done) => { setTimeout(done, 50); }); // do not replace an element while it is clicked
  for (const id of ids) {
    const [old, fresh] = [document.getElementById(id), page.getElementById(id)];
    if (old && fresh) swapOrHold(old, fresh);
  }
  Object.assign(tags, Object.fromEntries((answer.headers.get(PART) ?? "").split(" ").map((one) => one.split("="))));
  updateTitle();
  showAlert();
  moveFocus();
}

// Focus: to what an action or a change of state has brought. A heading does not take it from elsewhere on the page.

let focusKeys = new Set();

function moveFocus() {
  const marked = [...document.querySelectorAll("[data-focus]")];
  const fresh = marked.filter((element) => !focusKeys.has(element.dataset.focus));
  focusKeys = new Set(marked.map((element) => element.dataset.focus));
  const target = fresh.find((element) => element.matches("button")) ?? fresh[0];
  const active = document.activeElement ?? document.body;
  const isFree = active === document.body || target?.closest("[data-live]")?.contains(active);
  if (target && (isFree || target.matches("button"))) target.focus();
}

let wanted = new Set();
let gathering = null;

function refresh(ids) {
  ids.forEach((id) => wanted.add(id));
  if (gathering || !due().length) return;
  gathering = setTimeout(async () => {
    const now = due();
    now.forEach((id) => wanted.delete(id));
    try {
      await fetchPage(document.body.dataset.here, now);
    } catch {
      now.forEach((id) => wanted.add(id)); // the service does not respond: retry at the next event
    }
    gathering = null;
    if (due().length) setTimeout(() => refresh([]), 3000);
  }, GATHER);
}

// The requested regions to reload now: in a hidden tab, only those with data-background.
const due = () => [...wanted].filter((id) => !document.hidden || document.getElementById(id)?.matches("[data-background]"));

let stream = null;
let retry = null;

function listen(wait = AGAIN[0], lost = false) {
  const url = document.body.dataset.pulse;
  if (!url || !regions("[data-live]").length) return;
  clearTimeout(retry);
  stream?.close();
  stream = new EventSource(url);
  for (const event of ["ladder", "queue"]) {
    stream.addEventListener(event, () => refresh(regions(`[data-live~="${event}"]`).map((region) => region.id)));
  }
  stream.addEventListener("open", () => {
    if (lost) refresh(regions("[data-live]").map((region) => region.id)); // changes missed meanwhile
    [lost, wait] = [false, AGAIN[0]];
    document.documentElement.dataset.stream = "open";
  });
  stream.addEventListener("error", () => {
    lost = true;
    document.documentElement.dataset.stream = "lost";
    if (stream.readyState !== EventSource.CLOSED) return; // the browser reconnects on its own
    const longest = document.querySelector("[data-background]") ? SOON : AGAIN[1];
    retry = setTimeout(() => listen(Math.min(2 * wait, longest), true), wait * (0.5 + Math.random()));
  });
}

function leave() {
  clearTimeout(retry);
  stream?.close(); // browsers do not put pages with an open stream into the back/forward cache
}

function comeBack(event) {
  if (!event.persisted) return; // the page is loaded anyway
  listen(AGAIN[0], true);
  tick();
}

let second = 0;

function tick() {
  second += 1;
  refresh(regions("[data-every]").filter((region) => second % Number(region.dataset.every) === 0).map((region) => region.id));
  if (!document.hidden) document.querySelectorAll("time[data-ago]").forEach(updateAgo);
}

// The head: the menu closes, and the tab of the page is in view

const menu = document.querySelector(".menu");

function closeMenu({ key, target }) {
  if (!menu.open || (key ?? "Escape") !== "Escape" || (!key && menu.contains(target))) return;
  menu.open = false;
  if (key) menu.querySelector("summary").focus();
}

addEventListener("click", closeMenu);
addEventListener("keydown", closeMenu);
const tab = document.querySelector(".tabs [aria-current]");
if (tab) { // scrollIntoView would move the point from which Tab goes on
  const [strip, box] = [tab.closest(".wrap"), tab.getBoundingClientRect()];
  strip.scrollLeft += box.left + box.width / 2 - innerWidth / 2;
}

// Times in the visitor's time zone, and the separators of their numbers for the next page

const locale = navigator.language.split("-")[0] === lang ? undefined : `${lang}-u-nu-latn`; // the visitor's own variety, if it is one of the page's language
const clock = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" });

function localise(page) {
  for (const time of page.querySelectorAll("time[datetime]")) {
    const words = clock.format(new Date(time.dateTime));
    if (time.dataset.ago === undefined) time.textContent = words;
    else time.title = words;
  }
}

function parsed(text) {
  const page = new DOMParser().parseFromString(text, "text/html");
  localise(page);
  return page;
}

function sendSeparators() {
  const parts = new Intl.NumberFormat(locale).formatToParts(1234567.8);
  const used = ["group", "decimal"].map((type) => parts.find((part) => part.type === type)?.value ?? "").join("");
  const secure = location.protocol === "https:";
  document.cookie = `${secure ? "__Host-" : ""}evenmatch-numbers=${encodeURIComponent(used)}; path=/; max-age=31536000; samesite=lax${secure ? "; secure" : ""}`;
}

// Relative times

const [MINUTE, HOUR, DAY] = [60, 3600, 86_400];
const ahead = Number(document.body.dataset.now) - Date.now(); // how far the service's clock is ahead, in milliseconds

function roughly(seconds) {
  const [size, unit] =
    seconds < 2 * MINUTE ? [1, "s"] : seconds < 2 * HOUR ? [MINUTE, "min"] : seconds < 2 * DAY ? [HOUR, "h"] : [DAY, "days"];
  return fill(texts[unit], Math.round(seconds / size));
}

function updateAgo(time) {
  const passed = (Date.now() + ahead - Date.parse(time.dateTime)) / 1000;
  const words = Math.abs(passed) < MINUTE ? texts.now : fill(passed > 0 ? texts.ago : texts.in, roughly(Math.abs(passed)));
  if (time.textContent !== words) time.textContent = words;
}

// Alerts: title, sound and notification

const title = document.title;
let alerted = document.querySelector("[data-alert]")?.dataset.alert;

function updateTitle() {
  document.title = document.querySelector("[data-title]")?.dataset.title ?? title;
}

function showAlert() {
  const alert = document.querySelector("[data-alert]");
  if (!alert || alert.dataset.alert === alerted) return;
  alerted = alert.dataset.alert;
  playSound();
  if (document.hidden && mayNotify()) notify(alert.dataset.alertWords);
}

async function playSound() {
  if (navigator.userActivation?.hasBeenActive === false) return; // browsers block sounds before the first click or key
  let sound = null;
  try {
    sound = new AudioContext();
    await Promise.race([sound.resume(), new Promise((done) => setTimeout(done, 1000))]);
    if (sound.state !== "running") throw new Error("no sound");
    for (const [delay, pitch] of [[0, 660], [0.18, 880]]) {
      const [tone, volume] = [sound.createOscillator(), sound.createGain()];
      tone.frequency.value = pitch;
      volume.gain.setValueAtTime(0.2, sound.currentTime + delay);
      volume.gain.exponentialRampToValueAtTime(0.001, sound.currentTime + delay + 0.4);
      tone.connect(volume).connect(sound.destination);
      tone.start(sound.currentTime + delay);
      tone.stop(sound.currentTime + delay + 0.4);
    }
    await new Promise((done) => setTimeout(done, 1000));
  } catch {
    // no sound available: the title shows the alert
  } finally {
    sound?.close();
  }
}

const mayNotify = () => "Notification" in window && Notification.permission === "granted";

function notify(words) {
  try {
    const note = new Notification(document.querySelector(".brand").textContent, { body: words, tag: "evenmatch-offer", requireInteraction: true });
    note.onclick = () => { focus(); note.close(); };
    document.addEventListener("visibilitychange", () => note.close(), { once: true });
  } catch {
    // some mobile browsers allow notifications of installed apps only
  }
}

function offerNotifications() {
  const button = document.querySelector("[data-notify]");
  if (!button) return;
  button.hidden = !("Notification" in window) || Notification.permission !== "default";
  button.onclick = async () => {
    await Notification.requestPermission();
    offerNotifications();
  };
}

// Forms that submit themselves

function updateValues(form) {
  for (const output of form.querySelectorAll("output[for]")) {
    const input = document.getElementById(output.htmlFor.value);
    if (input) output.value = `${input.value}${output.dataset.unit ?? ""}`;
  }
}

function watchForm(form) {
  const region = document.getElementById(form.dataset.redraw);
  let timer = null;
  let requests = 0;
  const send = async () => {
    const request = ++requests;
    region.setAttribute("aria-busy", "true");
    const url = `${form.action.split("?")[0]}?${new URLSearchParams(new FormData(form))}`;
    try {
      const response = await fetchRegions(url, [region.id]);
      const page = parsed(await response.text());
      if (request !== requests) return; // a newer request was sent
      const fresh = page.getElementById(region.id);
      if (fresh) swap(region, fresh);
      else region.textContent = page.querySelector("main")?.textContent.trim() ?? "";
      history.replaceState(null, "", url);
      document.body.dataset.here = url;
    } catch {
      region.textContent = texts.silent;
    } finally {
      if (request === requests) region.removeAttribute("aria-busy");
    }
  };
  form.addEventListener("input", () => {
    updateValues(form);
    clearTimeout(timer);
    timer = setTimeout(send, SETTLE);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  updateValues(form);
}

// Fields that depend on a choice

function watchChoices(region) {
  const drop = () => document.querySelectorAll(`[data-of="${region.id}"]`).forEach((node) => node.remove());
  let requests = 0;
  region.closest("form").addEventListener("input", drop);
  region.addEventListener("change", async ({ target }) => {
    if (target.dataset.choose !== region.id) return;
    const request = ++requests;
    region.setAttribute("aria-busy", "true");
    const chosen = [...region.querySelectorAll("[data-choose]")].map((select) => [select.name, select.value]);
    try {
      const url = `${document.body.dataset.here.split("?")[0]}?${new URLSearchParams(chosen)}`;
      const response = await fetchRegions(url, [region.id]);
      const page = parsed(await response.text());
      const fresh = page.getElementById(region.id);
      if (request !== requests || !fresh) return;
      region.replaceChildren(...fresh.childNodes);
      document.getElementById(target.id)?.focus({ preventScroll: true });
    } catch {
      // the old parameters stay; the service shows the new ones when the form is submitted
    } finally {
      if (request === requests) region.removeAttribute("aria-busy");
    }
  });
}

document.documentElement.classList.add("live");
localise(document);
sendSeparators();
document.querySelectorAll("form[data-redraw]").forEach(watchForm);
new Set([...document.querySelectorAll("[data-choose]")].map((select) => select.dataset.choose)).forEach((id) => {
  watchChoices(document.getElementById(id));
});
document.addEventListener("visibilitychange", () => refresh([]));
addEventListener("pagehide", leave);
addEventListener("pageshow", comeBack);
offerNotifications();
updateTitle();
moveFocus();
listen();
setInterval(tick, 1000);
