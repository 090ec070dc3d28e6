// What is live on the pages. Without it every page still says all it has to say, but for the curves.
//
// <body data-pulse="URL">          a stream of events `ladder` and `queue`, at which regions are fetched again
// <… id data-live="ladder queue">  such a region: at which of the events
// <… id data-every="2">            a region that is fetched again every so many seconds, while it says so
// <… data-figure="URL">            a chart: plotly's figure at this address, or in the element that data-from names
// <form data-redraw="id">          sends itself when a value changes, and shows the answer in this region
// <tr data-key data-value>         a row that is marked for a moment when its value has changed

const NARROW = 520; // pixels, below which charts have fewer ticks
const SETTLE = 250; // milliseconds after the last change of a slider
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

async function figureOf(chart) {
  const from = chart.dataset.from && document.getElementById(chart.dataset.from);
  if (from) return JSON.parse(from.textContent);
  const answer = await fetch(chart.dataset.figure, { credentials: "same-origin" });
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
  return { data, layout };
}

async function draw(chart) {
  try {
    const [plotly, figure] = await Promise.all([loadLibrary(), figureOf(chart)]);
    const { data, layout } = painted(figure, chart);
    if (!chart.dataset.drawn) chart.replaceChildren();
    await plotly.react(chart, data, layout, { displayModeBar: false, displaylogo: false, responsive: true });
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
}

let wanted = new Set();
let gathering = null;

function refresh(ids) {
  ids.forEach((id) => wanted.add(id));
  if (gathering || document.hidden || !wanted.size) return;
  gathering = setTimeout(async () => {
    const now = [...wanted];
    wanted = new Set();
    try {
      await fetchPage(location.href, now);
    } catch {
      now.forEach((id) => wanted.add(id)); // the service is away: at the next event
    }
    gathering = null;
    if (wanted.size) setTimeout(() => refresh([]), 3000);
  }, GATHER);
}

function listen(wait = AGAIN[0], lost = false) {
  const url = document.body.dataset.pulse;
  if (!url || !regions("[data-live]").length) return;
  const all = () => regions("[data-live]").map((one) => one.id);
  const stream = new EventSource(url);
  const leave = () => stream.close();
  for (const what of ["ladder", "queue"]) {
    stream.addEventListener(what, () => refresh(regions(`[data-live~="${what}"]`).map((one) => one.id)));
  }
  stream.addEventListener("open", () => {
    if (lost) refresh(all()); // what was missed meanwhile
    [lost, wait] = [false, AGAIN[0]];
    document.documentElement.dataset.stream = "open";
  });
  stream.addEventListener("error", () => {
    lost = true;
    document.documentElement.dataset.stream = "lost";
    if (stream.readyState !== EventSource.CLOSED) return; // the browser tries again by itself
    removeEventListener("pagehide", leave);
    setTimeout(() => listen(Math.min(2 * wait, AGAIN[1]), true), wait * (0.5 + Math.random()));
  });
  addEventListener("pagehide", leave);
}

function beat() {
  let second = 0;
  setInterval(() => {
    second += 1;
    refresh(regions("[data-every]").filter((one) => second % Number(one.dataset.every) === 0).map((one) => one.id));
  }, 1000);
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

document.documentElement.classList.add("live");
drawAll();
document.querySelectorAll("form[data-redraw]").forEach(watchForm);
dark.addEventListener("change", () => drawAll());
document.addEventListener("visibilitychange", () => refresh([]));
listen();
beat();
