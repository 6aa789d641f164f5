// Draws every figure with data-chart by uPlot, in the theme's colors and zoomable.
(() => {
  const INKS = ["--accent", "--gold", "--good", "--bad", "--soft", "--warn", "--ink", "--edge"];

  const color = (name) => {
    const probe = document.createElement("span");
    probe.style.color = `var(${name})`;
    document.body.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  };

  // uPlot needs one list of x positions for all series: each series has a value or null at each.
  // A position is repeated if a series has several points there, so that none is lost.
  const aligned = (series) => {
    const most = new Map();
    for (const each of series) {
      const here = new Map();
      for (const [at] of each.points) here.set(at, (here.get(at) || 0) + 1);
      for (const [at, count] of here) most.set(at, Math.max(count, most.get(at) || 0));
    }
    const positions = [...most.keys()].sort((one, other) => one - other).flatMap((at) => new Array(most.get(at)).fill(at));
    const columns = series.map((each) => {
      const column = new Array(positions.length).fill(null);
      for (const [at, value] of each.points) {
        let index = positions.indexOf(at);
        while (column[index] !== null) index += 1;
        column[index] = value;
      }
      return column;
    });
    return [positions, ...columns];
  };

  const line = (each, index) => {
    const ink = color(INKS[index % INKS.length]);
    const dots = each.stroke === "dots";
    return {
      label: each.name,
      stroke: ink,
      width: dots ? 0 : 2,
      spanGaps: true,
      paths: dots ? () => null : each.stroke === "steps" ? uPlot.paths.stepped({ align: 1 }) : undefined,
      points: { show: dots || each.stroke === "line", size: dots ? 6 : 5, fill: ink, stroke: ink },
      value: (_, value) => (value === null || value === undefined ? "" : String(+value.toPrecision(5))),
    };
  };

  // uPlot's formats of times: [the least seconds between two ticks, format, and what is added where
  // the year, day or minute changes]
  const DAYS = [
    [3600 * 24 * 365, "{YYYY}", null, null, null, null, null, null, 1],
    [3600 * 24 * 28, "{MMM}", "\n{YYYY}", null, null, null, null, null, 1],
    [3600 * 24, "{MMM} {D}", "\n{YYYY}", null, null, null, null, null, 1],
    [60, "{HH}:{mm}", "\n{MMM} {D}", null, "\n{MMM} {D}", null, null, null, 1],
    [1, "{HH}:{mm}:{ss}", "\n{MMM} {D}", null, "\n{MMM} {D}", null, null, null, 1],
  ];

  const axes = (data) => {
    const ink = color("--soft");
    const grid = { stroke: color("--line"), width: 1 };
    const font = "12px system-ui, sans-serif";
    const x = { stroke: ink, grid, ticks: grid, font, values: DAYS, space: 80 };
    if (data.names.length) {
      x.splits = () => data.names.map((_, index) => index);
      x.values = () => data.names;
    }
    return [x, { stroke: ink, grid, ticks: grid, font, label: data.y, labelFont: font, labelSize: 20, size: 62 }];
  };

  const draw = (figure, data) => {
    const canvas = figure.querySelector(".canvas");
    const values = aligned(data.series);
    const margin = data.names.length ? 0.3 : 0;
    const options = {
      width: canvas.clientWidth,
      height: canvas.clientHeight,
      tzDate: (at) => uPlot.tzDate(new Date(at * 1e3), "Etc/UTC"),
      scales: { x: { time: !data.names.length, range: margin ? [-margin, data.names.length - 1 + margin] : undefined } },
      series: [{ label: data.x, value: data.names.length ? (_, at) => data.names[at] ?? "" : "{YYYY}-{MM}-{DD} {HH}:{mm}" }, ...data.series.map(line)],
      axes: axes(data),
      hooks: { setCursor: [(plot) => plot.root.classList.toggle("idle", plot.cursor.left < 0)] },
      cursor: { drag: { x: true, y: false, setScale: true } },
    };
    canvas.replaceChildren();
    const plot = new uPlot(options, values, canvas);
    // Until the cursor is over the plot, the legend has names but no values.
    plot.root.classList.add("idle");
    queueMicrotask(() => {
      // Its legend is as wide as the plot only after uPlot's own microtask.
      const legend = plot.root.querySelector(".u-legend").offsetHeight;
      plot.setSize({ width: canvas.clientWidth, height: Math.max(160, canvas.clientHeight - legend) });
    });
    return plot;
  };

  const start = async (figure) => {
    const inside = figure.querySelector("script[type='application/json']");
    const data = inside
      ? JSON.parse(inside.textContent)
      : await (await fetch(figure.dataset.source)).json();
    if (!data.series.length) return;
    let plot = draw(figure, data);
    figure.dataset.drawn = "";
    const redraw = () => {
      plot.destroy();
      plot = draw(figure, data);
    };
    document.addEventListener("themed", redraw);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    new ResizeObserver(([entry]) => {
      if (Math.abs(entry.contentRect.width - plot.width) > 1) redraw();
    }).observe(figure.querySelector(".canvas"));
    for (const button of figure.querySelectorAll("[data-days]")) {
      button.addEventListener("click", () => {
        const positions = plot.data[0];
        const days = Number(button.dataset.days);
        const last = positions[positions.length - 1];
        plot.setScale("x", { min: days ? Math.max(positions[0], last - days * 86400) : positions[0], max: last });
      });
    }
  };

  for (const figure of document.querySelectorAll("[data-chart]")) {
    start(figure).catch((error) => {
      figure.querySelector(".canvas").textContent = "The plot could not be loaded; its numbers are in the table.";
      console.error(error);
    });
  }
})();
