// The charts of the lab, drawn by plotly.
//
// <script data-plotly="URL">  where the library is
// <… data-figure="URL">       a chart: the plotly figure at this URL, or in the element with the id in data-from

const NARROW = 520; // pixels, below which charts have fewer ticks
const dark = matchMedia("(prefers-color-scheme: dark)");
const touch = matchMedia("(pointer: coarse)");

let library = null;

function loadLibrary() {
  library ??= new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = document.querySelector("script[data-plotly]").dataset.plotly;
    script.onload = () => done(window.Plotly);
    script.onerror = () => {
      library = null; // the next chart retries
      failed(new Error("The chart library could not be loaded"));
    };
    document.head.append(script);
  });
  return library;
}

async function figureOf(chart) {
  const from = chart.dataset.from && document.getElementById(chart.dataset.from);
  if (from) return JSON.parse(from.textContent);
  const response = await fetch(chart.dataset.figure, { credentials: "same-origin" });
  if (!response.ok) throw new Error(`The chart could not be loaded (${response.status})`);
  return response.json();
}

function coloursOf(names) {
  const sample = document.body.appendChild(document.createElement("span"));
  const colours = names.map((name) => {
    sample.style.color = `var(${name})`; // resolves light-dark(…), which the property itself does not
    return getComputedStyle(sample).color;
  });
  sample.remove();
  return colours;
}

function painted(figure, chart) {
  const { data, layout } = structuredClone(figure);
  const [ink, soft, grid, ground] = coloursOf(["--ink", "--soft", "--line", "--raised"]);
  layout.font = { ...layout.font, color: soft };
  layout.hoverlabel = { ...layout.hoverlabel, bgcolor: ground, bordercolor: grid, font: { color: ink } };
  for (const axis of Object.keys(layout).filter((key) => /^[xy]axis\d*$/.test(key))) {
    Object.assign(layout[axis], { gridcolor: grid, linecolor: grid });
    if (touch.matches) layout[axis].fixedrange = true; // touching the chart scrolls the page
    if (chart.clientWidth < NARROW && axis.startsWith("x") && layout[axis].type === "date") {
      delete layout[axis].dtick;
      layout[axis].nticks = 4;
    }
  }
  if (touch.matches) layout.dragmode = false;
  return { data, layout };
}

const drawings = new WeakMap(); // number of draws of a chart: an outdated response is ignored

async function draw(chart) {
  const drawing = (drawings.get(chart) ?? 0) + 1;
  drawings.set(chart, drawing);
  try {
    const [plotly, figure] = await Promise.all([loadLibrary(), figureOf(chart)]);
    if (drawings.get(chart) !== drawing) return;
    const { data, layout } = painted(figure, chart);
    if (!chart.dataset.drawn) chart.replaceChildren();
    await plotly.react(chart, data, layout, { displayModeBar: false, displaylogo: false, responsive: true });
    chart.dataset.drawn = "true";
  } catch (error) {
    if (!chart.dataset.drawn) chart.textContent = `${error.message}.`; // a chart that is already drawn stays
  }
}

const drawAll = (within = document) => within.querySelectorAll(".figure").forEach(draw);

drawAll();
dark.addEventListener("change", () => drawAll());
addEventListener("swapped", ({ target }) => drawAll(target));
