// What is live on the pages. Without it every page still says all it has to say, but for the curves.
//
// <body data-here="URL">           the address of this page, at which its regions are fetched again
// <body data-now="…">              the service's clock when the page was made, in milliseconds
// <body data-pulse="URL">          a stream of events `ladder` and `queue`, at which regions are fetched again
// <… id data-live="ladder queue">  such a region: at which of the events
// <… id data-every="2">            a region that is fetched again every so many seconds, while it says so
// <… data-background>              such a region in a tab that nobody looks at too
// <… data-title="…">               the title of the page while this is in it
// <… data-alert data-alert-words>  a new value is told by a sound and, where it is allowed, a notification
// <button data-notify>             asks whether notifications are allowed
// <time data-ago>                  says how long ago it was
// <… data-figure="URL">            a chart: plotly's figure at this address, or in the element that data-from names
// <form data-redraw="id">          sends itself when a value changes, and shows the answer in this region
// <select data-choose="id">        shows the fields that belong to another choice in this region
// <… data-of="id">                 goes when something else is chosen or typed in the form of that region
// <tr data-key data-value>         a row that is marked for a moment when its value has changed

const NARROW = 520; // pixels, below which charts have fewer ticks
const SETTLE = 250; // milliseconds after the last change of a slider
const SOON = 5000; // milliseconds: the same where somebody waits for what the stream tells
const AGAIN = [2000, 60_000]; // milliseconds until a lost stream is tried again: at first, and at most
const GATHER = 400; // milliseconds in which further events count as one
const dark = matchMedia("(prefers-color-scheme: dark)");
const touch = matchMedia("(pointer: coarse)");

const regions = (selector, within = document) => [...within.querySelectorAll(selector)].filter((one) => one.id);

// Charts

let library = null;

function loadLibrary() {
  library ??= new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = document.body.dataset.plotly;
    script.onload = () => done(window.Plotly);
    script.onerror = () => {
      library = null; // the next chart tries again
      failed(new Error("the chart library could not be loaded"));
    };
    document.head.append(script);
  });
  return library;
}

const zooms = new WeakMap(); // the stretch of time that a chart shows, in milliseconds, where that is not all

async function figureOf(chart) {
  const from = chart.dataset.from && document.getElementById(chart.dataset.from);
  if (from) return JSON.parse(from.textContent);
  const url = new URL(chart.dataset.figure, location.href);
  const zoom = zooms.get(chart);
  if (zoom) ["since", "until"].forEach((name, at) => url.searchParams.set(name, Math.round(zoom[at])));
  const answer = await fetch(url, { credentials: "same-origin" });
  if (!answer.ok) throw new Error(`the chart could not be read (${answer.status})`);
  return answer.json();
}

function coloursOf(names) {
  const sample = document.body.appendChild(document.createElement("span"));
  const found = names.map((name) => {
    sample.style.color = `var(${name})`; // the property itself is text, light-dark(…) and all
    return getComputedStyle(sample).color;
  });
  sample.remove();
  return found;
}

function painted(figure, chart) {
  const { data, layout } = structuredClone(figure);
  const [ink, soft, grid, ground] = coloursOf(["--ink", "--soft", "--line", "--raised"]);
  layout.font = { ...layout.font, color: soft };
  layout.hoverlabel = { ...layout.hoverlabel, bgcolor: ground, bordercolor: grid, font: { color: ink } };
  for (const axis of Object.keys(layout).filter((key) => /^[xy]axis\d*$/.test(key))) {
    Object.assign(layout[axis], { gridcolor: grid, linecolor: grid });
    if (touch.matches) layout[axis].fixedrange = true; // a finger on the chart scrolls the page
    if (chart.clientWidth < NARROW && axis.startsWith("x") && layout[axis].type === "date") {
      delete layout[axis].dtick;
      layout[axis].nticks = 4;
    }
  }
  if (touch.matches) layout.dragmode = false;
  else if (layout.meta?.more) layout.title.text += " Drag across a stretch to see all of it.";
  if (layout.meta?.more || zooms.has(chart)) layout.yaxis.fixedrange = true; // a stretch of time is chosen
  if (zooms.has(chart)) layout.xaxis.range = zooms.get(chart);
  return { data, layout };
}

// A chart of some of many points fetches those of the stretch that is zoomed into.
function watchZoom(chart, [first, last]) {
  const millis = (at) => typeof at === "number" ? at : Date.parse(at.includes(" ") ? `${at.replace(" ", "T")}Z` : at);
  chart.on("plotly_relayout", () => {
    const [since, until] = chart.layout.xaxis.range.map(millis);
    const before = zooms.get(chart);
    if (since <= first && until >= last) zooms.delete(chart);
    else zooms.set(chart, [since, until]);
    if (String(before) !== String(zooms.get(chart))) draw(chart);
  });
}

const drawings = new WeakMap(); // how often a chart was drawn: an answer that is overtaken is left out

async function draw(chart) {
  const drawing = (drawings.get(chart) ?? 0) + 1;
  drawings.set(chart, drawing);
  try {
    const [plotly, figure] = await Promise.all([loadLibrary(), figureOf(chart)]);
    if (drawings.get(chart) !== drawing) return;
    const { data, layout } = painted(figure, chart);
    if (!chart.dataset.drawn) chart.replaceChildren();
    await plotly.react(chart, data, layout, { displayModeBar: false, displaylogo: false, responsive: true });
    if (!chart.dataset.drawn && layout.meta?.more) watchZoom(chart, layout.xaxis.range);
    chart.dataset.drawn = "true";
  } catch (error) {
    if (!chart.dataset.drawn) chart.textContent = `${error.message}.`; // one that is drawn stays as it was
  }
}

const CHARTS = "[data-figure], [data-from]";
const drawAll = (within = document) => within.querySelectorAll(CHARTS).forEach(draw);

// Regions: what is new is put into what is there, so that focus, scrolling and a pressed button stay

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
  row.classList.remove("rose", "fell");
  row.getBoundingClientRect(); // so that the same mark is seen again
  row.classList.add(Number(after) < Number(before) ? "fell" : "rose");
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
  if (old.matches(CHARTS)) {
    for (const name of ["data-figure", "data-from", "aria-label"]) {
      if (fresh.hasAttribute(name)) old.setAttribute(name, fresh.getAttribute(name));
    }
    return; // what is in it is the chart library's
  }
  syncAttributes(old, fresh);
  const keyed = new Map(); // those of a key in their order: two may have the same
  for (const node of [...old.childNodes].filter(keyOf)) keyed.set(keyOf(node), [...(keyed.get(keyOf(node)) ?? []), node]);
  const wasFull = keyed.size > 0;
  let at = old.firstChild;
  for (const next of [...fresh.childNodes]) {
    const key = keyOf(next);
    const known = key === null ? at : keyed.get(key)?.shift();
    if (known && isAlike(known, next)) {
      if (known === at) at = at.nextSibling;
      else old.insertBefore(known, at);
      morph(known, next);
    } else {
      old.insertBefore(next, at);
      if (wasFull && next.dataset?.key !== undefined) next.classList.add("rose");
    }
  }
  while (at) {
    const gone = at;
    at = at.nextSibling;
    gone.remove();
  }
}

let pressed = false;
addEventListener("pointerdown", () => { pressed = true; }, true);
for (const end of ["pointerup", "pointercancel", "blur"]) addEventListener(end, () => { pressed = false; }, true);

function swap(old, fresh) {
  const held = old.contains(document.activeElement) ? document.activeElement : null;
  const place = held && keyOf(held);
  morph(old, fresh);
  drawAll(old);
  if (held && document.activeElement !== held && place) {
    [...old.querySelectorAll(held.tagName)].find((one) => keyOf(one) === place)?.focus({ preventScroll: true });
  }
}

async function fetchPage(url, ids) {
  const answer = await fetch(url, { credentials: "same-origin", headers: { "X-Evenmatch-Part": ids.join(" ") } });
  if (answer.redirected && new URL(answer.url).pathname !== new URL(url, location.href).pathname) {
    location.assign(answer.url); // as when what was waited for has happened
    return;
  }
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  while (pressed) await new Promise((done) => { setTimeout(done, 50); }); // what is being clicked stays until then
  for (const id of ids) {
    const [old, fresh] = [document.getElementById(id), page.getElementById(id)];
    if (old && fresh) swap(old, fresh);
  }
  tellTitle();
  tellAlert();
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
      now.forEach((id) => wanted.add(id)); // the service is away: at the next event
    }
    gathering = null;
    if (due().length) setTimeout(() => refresh([]), 3000);
  }, GATHER);
}

// Those wanted that are fetched now: where nobody looks at the tab, only what somebody waits for.
const due = () => [...wanted].filter((id) => !document.hidden || document.getElementById(id)?.matches("[data-background]"));

let stream = null;
let retry = null;

function listen(wait = AGAIN[0], lost = false) {
  const url = document.body.dataset.pulse;
  if (!url || !regions("[data-live]").length) return;
  clearTimeout(retry);
  stream?.close();
  stream = new EventSource(url);
  for (const what of ["ladder", "queue"]) {
    stream.addEventListener(what, () => refresh(regions(`[data-live~="${what}"]`).map((one) => one.id)));
  }
  stream.addEventListener("open", () => {
    if (lost) refresh(regions("[data-live]").map((one) => one.id)); // what was missed meanwhile
    [lost, wait] = [false, AGAIN[0]];
    document.documentElement.dataset.stream = "open";
  });
  stream.addEventListener("error", () => {
    lost = true;
    document.documentElement.dataset.stream = "lost";
    if (stream.readyState !== EventSource.CLOSED) return; // the browser tries again by itself
    const longest = document.querySelector("[data-background]") ? SOON : AGAIN[1];
    retry = setTimeout(() => listen(Math.min(2 * wait, longest), true), wait * (0.5 + Math.random()));
  });
}

function leave() {
  clearTimeout(retry);
  stream?.close(); // a page with an open stream is not kept for the back button
}

function comeBack(event) {
  if (!event.persisted) return; // the page begins anyway
  listen(AGAIN[0], true);
  tick();
}

let second = 0;

function tick() {
  second += 1;
  refresh(regions("[data-every]").filter((one) => second % Number(one.dataset.every) === 0).map((one) => one.id));
  if (!document.hidden) document.querySelectorAll("time[data-ago]").forEach(tellAgo);
}

// Times that pass

const [MINUTE, HOUR, DAY] = [60, 3600, 86_400];
const ahead = Number(document.body.dataset.now) - Date.now(); // of the service's clock, in milliseconds

function roughly(seconds) {
  const [size, unit] =
    seconds < 2 * MINUTE ? [1, "s"] : seconds < 2 * HOUR ? [MINUTE, "min"] : seconds < 2 * DAY ? [HOUR, "h"] : [DAY, "days"];
  return `${Math.round(seconds / size)} ${unit}`;
}

function tellAgo(time) {
  const passed = (Date.now() + ahead - Date.parse(time.dateTime)) / 1000;
  const told = Math.abs(passed) < MINUTE ? "just now" : passed > 0 ? `${roughly(passed)} ago` : `in ${roughly(-passed)}`;
  if (time.textContent !== told) time.textContent = told;
}

// What must not be missed: in the title, by a sound, by a notification

const title = document.title;
let alerted = document.querySelector("[data-alert]")?.dataset.alert;

function tellTitle() {
  document.title = document.querySelector("[data-title]")?.dataset.title ?? title;
}

function tellAlert() {
  const found = document.querySelector("[data-alert]");
  if (!found || found.dataset.alert === alerted) return;
  alerted = found.dataset.alert;
  ring();
  if (document.hidden && mayNotify()) notify(found.dataset.alertWords);
}

async function ring() {
  if (navigator.userActivation?.hasBeenActive === false) return; // a page may not sound before it is touched
  let sound = null;
  try {
    sound = new AudioContext();
    await Promise.race([sound.resume(), new Promise((done) => setTimeout(done, 1000))]);
    if (sound.state !== "running") throw new Error("no sound");
    for (const [at, pitch] of [[0, 660], [0.18, 880]]) {
      const [tone, volume] = [sound.createOscillator(), sound.createGain()];
      tone.frequency.value = pitch;
      volume.gain.setValueAtTime(0.2, sound.currentTime + at);
      volume.gain.exponentialRampToValueAtTime(0.001, sound.currentTime + at + 0.4);
      tone.connect(volume).connect(sound.destination);
      tone.start(sound.currentTime + at);
      tone.stop(sound.currentTime + at + 0.4);
    }
    await new Promise((done) => setTimeout(done, 1000));
  } catch {
    // a browser without sound: the title tells it
  } finally {
    sound?.close();
  }
}

const mayNotify = () => "Notification" in window && Notification.permission === "granted";

function notify(words) {
  try {
    const note = new Notification("evenmatch", { body: words, tag: "evenmatch-offer", requireInteraction: true });
    note.onclick = () => { focus(); note.close(); };
    document.addEventListener("visibilitychange", () => note.close(), { once: true });
  } catch {
    // some browsers of phones have notifications for installed pages alone
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

// Forms that answer at once

function tellValues(form) {
  for (const output of form.querySelectorAll("output[for]")) {
    const input = document.getElementById(output.htmlFor.value);
    if (input) output.value = `${input.value}${output.dataset.unit ?? ""}`;
  }
}

function watchForm(form) {
  const region = document.getElementById(form.dataset.redraw);
  let waits = null;
  let asked = 0;
  const send = async () => {
    const mine = ++asked;
    region.setAttribute("aria-busy", "true");
    const url = `${form.action.split("?")[0]}?${new URLSearchParams(new FormData(form))}`;
    try {
      const answer = await fetch(url, { credentials: "same-origin" });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (mine !== asked) return; // a later answer is on its way
      const fresh = page.getElementById(region.id);
      if (fresh) swap(region, fresh);
      else region.textContent = page.querySelector("main")?.textContent.trim() ?? "";
      history.replaceState(null, "", url);
      document.body.dataset.here = url;
    } catch {
      region.textContent = "The service did not answer.";
    } finally {
      if (mine === asked) region.removeAttribute("aria-busy");
    }
  };
  form.addEventListener("input", () => {
    tellValues(form);
    clearTimeout(waits);
    waits = setTimeout(send, SETTLE);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    send();
  });
  tellValues(form);
}

// Fields that depend on a choice

function watchChoices(region) {
  const drop = () => document.querySelectorAll(`[data-of="${region.id}"]`).forEach((one) => one.remove());
  let asked = 0;
  region.closest("form").addEventListener("input", drop);
  region.addEventListener("change", async ({ target }) => {
    if (target.dataset.choose !== region.id) return;
    const mine = ++asked;
    region.setAttribute("aria-busy", "true");
    const chosen = [...region.querySelectorAll("[data-choose]")].map((one) => [one.name, one.value]);
    try {
      const answer = await fetch(`${document.body.dataset.here.split("?")[0]}?${new URLSearchParams(chosen)}`);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const fresh = page.getElementById(region.id);
      if (mine !== asked || !fresh) return;
      region.replaceChildren(...fresh.childNodes);
      document.getElementById(target.id)?.focus({ preventScroll: true });
    } catch {
      // the parameters stay those of the choice before; the service shows the others when the form is sent
    } finally {
      if (mine === asked) region.removeAttribute("aria-busy");
    }
  });
}

document.documentElement.classList.add("live");
drawAll();
document.querySelectorAll("form[data-redraw]").forEach(watchForm);
new Set([...document.querySelectorAll("[data-choose]")].map((one) => one.dataset.choose)).forEach((id) => {
  watchChoices(document.getElementById(id));
});
dark.addEventListener("change", () => drawAll());
document.addEventListener("visibilitychange", () => refresh([]));
addEventListener("pagehide", leave);
addEventListener("pageshow", comeBack);
offerNotifications();
tellTitle();
listen();
setInterval(tick, 1000);
