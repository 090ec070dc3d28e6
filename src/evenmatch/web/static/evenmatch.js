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
    script.onerror = () => failed(new Error("the chart library could not be loaded"));
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
    chart.querySelector(":scope > p")?.remove();
    await plotly.react(chart, data, layout, { displayModeBar: false, displaylogo: false, responsive: true });
    chart.dataset.drawn = "true";
  } catch (error) {
    chart.textContent = `${error.message}.`;
  }
}

const drawAll = (within = document) => within.querySelectorAll("[data-figure], [data-from]").forEach(draw);

// Regions

function swap(old, fresh) {
  if (old.innerHTML === fresh.innerHTML && !old.dataset.every) return;
  const before = new Map([...old.querySelectorAll("[data-key]")].map((row) => [row.dataset.key, row.dataset.value]));
  const held = old.contains(document.activeElement) ? document.activeElement : null;
  const place = held && { id: held.id, href: held.getAttribute("href"), name: held.getAttribute("name") };
  for (const name of ["data-every", "data-live"]) {
    if (fresh.hasAttribute(name)) old.setAttribute(name, fresh.getAttribute(name));
    else old.removeAttribute(name);
  }
  const charts = new Map([...old.querySelectorAll("[data-figure][id]")].map((one) => [one.id, one]));
  old.replaceChildren(...fresh.childNodes);
  for (const row of old.querySelectorAll("[data-key]")) {
    const was = before.get(row.dataset.key);
    if (before.size && was !== row.dataset.value) row.classList.add(Number(row.dataset.value) < Number(was) ? "fell" : "rose");
  }
  for (const chart of old.querySelectorAll("[data-figure][id]")) {
    const known = charts.get(chart.id);
    if (known?.dataset.figure === chart.dataset.figure) chart.replaceWith(known); // drawn anew below, in its place
  }
  drawAll(old);
  if (place) {
    const found = (place.id && document.getElementById(place.id))
      || [...old.querySelectorAll("a, button, input, select, summary")].find((one) =>
        (place.href && one.getAttribute("href") === place.href) || (place.name && one.getAttribute("name") === place.name));
    found?.focus({ preventScroll: true });
  }
}

async function fetchPage(url, ids) {
  const answer = await fetch(url, { credentials: "same-origin", headers: { "X-Evenmatch-Part": ids.join(" ") } });
  if (answer.redirected && new URL(answer.url).pathname !== new URL(url, location.href).pathname) {
    location.assign(answer.url); // as when what was waited for has happened
    return;
  }
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
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

function listen() {
  const url = document.body.dataset.pulse;
  if (!url || !regions("[data-live]").length) return;
  const stream = new EventSource(url);
  let lost = false;
  const at = (what) => () => refresh(regions(`[data-live~="${what}"]`).map((one) => one.id));
  for (const what of ["ladder", "queue"]) stream.addEventListener(what, at(what));
  stream.addEventListener("open", () => {
    if (lost) refresh(regions("[data-live]").map((one) => one.id)); // what was missed meanwhile
    lost = false;
    document.documentElement.dataset.stream = "open";
  });
  stream.addEventListener("error", () => {
    lost = true;
    document.documentElement.dataset.stream = "lost";
  });
  addEventListener("pagehide", () => stream.close());
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
