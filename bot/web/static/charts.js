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

  // uPlot needs one ascending list of x positions for all series, and a value or null of each series at
  // each position. It leaves out some points at equal positions, so that of several points of a series at
  // one position, each after the first is drawn a millisecond later.
  const aligned = (series) => {
    const apart = series.map((each) => {
      let last = -Infinity;
      return each.points.map(([at, value]) => [(last = Math.max(at, last + 0.001)), value]);
    });
    const positions = [...new Set(apart.flat().map(([at]) => at))].sort((one, other) => one - other);
    const places = new Map(positions.map((at, index) => [at, index]));
    const columns = apart.map((points) => {
      const column = new Array(positions.length).fill(null);
      for (const [at, value] of points) column[places.get(at)] = value;
      return column;
    });
    return [positions, ...columns];
  };

  const line = (each, index) => {
    const ink = color(each.ink || INKS[index % INKS.length]);
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
    const y = { stroke: ink, grid, ticks: grid, font, label: data.y, labelFont: font, labelSize: 20, size: 62 };
    if (data.runs) Object.assign(y, { splits: logTicks, filter: (_, found) => found, values: (_, found) => found.map(String) });
    return [x, y];
  };

  // Round values on a logarithmic axis: 1, 2, 5, 10 if it is long, else in equal steps.
  const logTicks = (_, __, low, high) => {
    const power = (value) => 10 ** Math.floor(Math.log10(value));
    const found = [];
    if (high > 8 * low) {
      for (let at = power(low); at <= high; at *= 10) found.push(at, 2 * at, 5 * at);
    } else {
      const least = (high - low) / 5;
      const step = power(least) * [1, 2, 5, 10].find((each) => each * power(least) >= least);
      for (let at = Math.ceil(low / step); at * step <= high; at += 1) found.push(at * step);
    }
    return found.filter((at) => at >= low && at <= high).map((at) => +at.toPrecision(6));
  };

  const widened = (_, low, high) => {
    if (low === null) return [1, 10];
    const room = Math.max(1.04, (high / low) ** 0.04); // dots at the top and the bottom are whole
    return [low / room, high * room];
  };
  const LEAST_S = 60; // the shortest time that is drawn
  const lengthened = (_, from, to) => {
    const room = Math.max(0.01 * (to - from), (LEAST_S - (to - from)) / 2); // dots at the ends are whole
    return [from - room, to + room];
  };

  // In a season each run is a dot: [time, value, half-width, submission, index in `people`, the
  // person's run before it]. The runs of the viewer, [data-me], are a separate series.
  const withRuns = (data, me) => {
    const own = data.people.findIndex(([person]) => person === me);
    const dots = (name, ink, runs) => (runs.length ? [{ name, ink, stroke: "dots", points: runs }] : []);
    const [others, mine] = [false, true].map((wanted) => data.runs.filter((run) => (run[4] === own) === wanted));
    return { ...data, own, series: [...data.series, ...dots(data.each, "--edge", others), ...dots("yours", "--gold", mine)] };
  };

  const REACH = 30; // how far in pixels a dot may be from the mouse or finger that picks it
  const nearest = (plot, data) => {
    let [found, least] = [null, REACH];
    for (const run of data.runs) {
      const [left, top] = [plot.valToPos(run[0], "x"), plot.valToPos(run[1], "y")];
      if (left < 0 || left > plot.over.clientWidth) continue;
      const away = Math.hypot(left - plot.cursor.left, top - plot.cursor.top);
      if (away < least) [found, least] = [{ run, left, top }, away];
    }
    return found;
  };

  const made = (tag, text, more = {}) => Object.assign(document.createElement(tag), { textContent: text, ...more });

  // The texts and links about a dot: whose run, how fast, when.
  const describe = (data, [at, value, half, number, who, before]) => {
    const moment = new Date(at * 1e3).toISOString();
    const when = made("time", `${moment.slice(0, 16).replace("T", " ")} UTC`, { dateTime: moment });
    const link = (text, href) => made("a", text, { href });
    const links = [link(`Submission #${number}`, `/submissions/${number}`)];
    if (before && (data.shown || who === data.own)) links.push(link(`Changes since #${before}`, `/submissions/${before}/compare?with=${number}`));
    const digit = 10 ** (Math.floor(Math.log10(half)) - 1); // two digits, rounded up as everywhere
    return [made("strong", data.people[who][1]), made("span", `${+value.toPrecision(4)} ± ${half ? +(Math.ceil(half / digit - 1e-6) * digit).toPrecision(2) : 0} ${data.unit}`), when, ...links];
  };

  // Shows a box about the dot under the cursor, next to it; a click or a touch keeps the box open.
  const pickable = (plot, data) => {
    const [card, ring] = [made("div", "", { className: "run", hidden: true }), made("div", "", { className: "ring", hidden: true })];
    plot.over.append(ring, card);
    let kept = null;
    const show = (found) => {
      for (const each of [card, ring]) each.hidden = !found;
      if (!found) return;
      card.replaceChildren(...describe(data, found.run));
      card.dispatchEvent(new CustomEvent("timed", { bubbles: true }));
      card.classList.toggle("kept", kept !== null);
      const room = plot.over.clientWidth - card.offsetWidth;
      const above = found.top - card.offsetHeight - 12;
      card.style.left = `${Math.max(0, Math.min(room, found.left - card.offsetWidth / 2))}px`;
      card.style.top = `${above < 0 ? found.top + 12 : above}px`;
      ring.style.left = `${found.left}px`;
      ring.style.top = `${found.top}px`;
    };
    card.addEventListener("mousedown", (event) => event.stopPropagation());
    card.addEventListener("click", (event) => event.stopPropagation());
    plot.over.addEventListener("mousemove", (event) => kept || event.target !== plot.over || show(nearest(plot, data)));
    plot.over.addEventListener("mouseleave", () => kept || show(null));
    plot.over.addEventListener("click", () => show((kept = nearest(plot, data))));
    plot.root.addEventListener("keydown", (event) => event.key === "Escape" && show((kept = null)));
    return () => show((kept = null));
  };

  const draw = (figure, data) => {
    const canvas = figure.querySelector(".canvas");
    const values = aligned(data.series);
    const margin = data.names.length ? 0.3 : 0;
    const options = {
      width: canvas.clientWidth,
      height: canvas.clientHeight,
      scales: {
        x: { time: !data.names.length, range: margin ? [-margin, data.names.length - 1 + margin] : lengthened },
        y: data.runs ? { distr: 3, range: widened } : {},
      },
      series: [{ label: data.x, value: data.names.length ? (_, at) => data.names[at] ?? "" : "{YYYY}-{MM}-{DD} {HH}:{mm}" }, ...data.series.map(line)],
      axes: axes(data),
      padding: [null, 28, null, null], // room for half of the last time
      hooks: {
        setCursor: [(plot) => plot.root.classList.toggle("idle", !data.runs && plot.cursor.left < 0)],
        setScale: [() => unpick()],
      },
      legend: { live: !data.runs },
      cursor: { drag: { x: true, y: false, setScale: true }, points: { show: !data.runs } },
    };
    canvas.replaceChildren();
    let unpick = () => {};
    const plot = new uPlot(options, values, canvas);
    if (data.runs) unpick = pickable(plot, data);
    // Until the cursor is over the plot, the legend has names but no values.
    plot.root.classList.toggle("idle", !data.runs);
    queueMicrotask(() => {
      // Its legend is as wide as the plot only after uPlot's own microtask.
      const legend = plot.root.querySelector(".u-legend").offsetHeight;
      plot.setSize({ width: canvas.clientWidth, height: Math.max(160, canvas.clientHeight - legend) });
    });
    return plot;
  };

  // A plot that is loaded from data-source is loaded again some seconds after a part of the page has updated itself;
  // not while a box about a dot is kept open.
  const AGAIN_MS = 4000;
  const start = async (figure) => {
    const inside = figure.querySelector("script[type='application/json']");
    const { source, me } = figure.dataset;
    let [plot, data] = [null, null];
    const redraw = () => {
      if (!data) return;
      const [from, to] = plot ? [plot.scales.x.min, plot.scales.x.max] : [];
      const zoomed = plot && from > plot.data[0][0];
      plot?.destroy();
      plot = draw(figure, data);
      if (zoomed) plot.setScale("x", { min: from, max: to });
    };
    const load = async () => {
      const found = inside ? JSON.parse(inside.textContent) : await (await fetch(source, { cache: "no-cache" })).json();
      if (!found.series.length) return;
      data = found.runs ? withRuns(found, Number(me)) : found;
      figure.closest("section[hidden]")?.removeAttribute("hidden"); // there was no run before
      redraw();
      figure.dataset.drawn = "";
    };
    let timer = 0;
    const again = () => {
      clearTimeout(timer);
      timer = setTimeout(() => (figure.querySelector(".run.kept:not([hidden])") ? again() : load().catch(console.warn)), AGAIN_MS);
    };
    if (source) document.addEventListener("updated", again);
    await load();
    document.addEventListener("themed", redraw);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    new ResizeObserver(([entry]) => {
      if (plot && Math.abs(entry.contentRect.width - plot.width) > 1) redraw();
    }).observe(figure.querySelector(".canvas"));
    for (const button of figure.querySelectorAll("[data-days]")) {
      button.addEventListener("click", () => {
        if (!plot) return;
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
