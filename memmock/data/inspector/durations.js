// ---- durations
let plotting = 0;
function plotSoon() { if (!plotting) plotting = setTimeout(() => { plotting = 0; plot(); }, 150); }
const least = 0.1;
function plot() {
  if ($("times").hidden) return;
  const canvas = $("plot"), ratio = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const draw = canvas.getContext("2d"), style = getComputedStyle(document.documentElement), color = (name) => style.getPropertyValue(name).trim();
  draw.scale(ratio, ratio);
  draw.font = "11px system-ui, sans-serif";
  const points = rows.filter((row) => row.over);
  $("plot-note").textContent = points.length ? t("plot_note", number(points.length)) : t("plot_none");
  showBars(points);
  if (!points.length) return;
  const from = points[0].at, to = Math.max(points[points.length - 1].at, from + 1000);
  const limit = points[points.length - 1].timeout_ms;
  let top = limit * 1.5;
  for (const row of points) top = Math.max(top, row.ms * 1.2);
  const box = { left: 52, right: width - 12, top: 10, bottom: height - 22 };
  const x = (at) => box.left + ((at - from) / (to - from)) * (box.right - box.left);
  const y = (ms) => box.bottom - (Math.log10(Math.max(ms, least) / least) / Math.log10(top / least)) * (box.bottom - box.top);
  draw.fillStyle = color("--soft");
  draw.strokeStyle = color("--line");
  draw.textBaseline = "middle";
  draw.textAlign = "right";
  for (let ms = least; ms <= top; ms *= 10) {
    draw.beginPath(); draw.moveTo(box.left, y(ms)); draw.lineTo(box.right, y(ms)); draw.stroke();
    draw.fillText(ms < 1 ? String(ms) : number(Math.round(ms)), box.left - 6, y(ms));
  }
  draw.textBaseline = "alphabetic";
  draw.textAlign = "left"; draw.fillText(clock(from).slice(0, 8), box.left, height - 6);
  draw.textAlign = "right"; draw.fillText(clock(to).slice(0, 8), box.right, height - 6);
  draw.strokeStyle = color("--bad");
  draw.setLineDash([4, 3]);
  draw.beginPath(); draw.moveTo(box.left, y(limit)); draw.lineTo(box.right, y(limit)); draw.stroke();
  draw.setLineDash([]);
  const size = points.length > 2000 ? 1.5 : 2.5;
  draw.globalAlpha = points.length > 500 ? 0.6 : 0.9;
  for (const bad of [false, true]) {
    draw.fillStyle = color(bad ? "--bad" : "--ok");
    draw.beginPath();
    for (const row of points) if (isFailed(row) === bad) { const at = [x(row.at), y(row.ms)]; draw.moveTo(at[0] + size, at[1]); draw.arc(at[0], at[1], size, 0, 7); }
    draw.fill();
  }
}
function showBars(points) {
  const groups = new Map();
  for (const row of points) {
    const name = (row.played || row.recording.replace(/ \d+.*$/, "") || t("no_scenario"));
    if (!groups.has(name)) groups.set(name, []);
    groups.get(name).push(row);
  }
  const found = [...groups].map(([name, members]) => {
    const times = members.map((row) => row.ms).sort((a, b) => a - b), at = (part) => times[Math.min(times.length - 1, Math.floor(times.length * part))];
    return { name, count: times.length, median: at(0.5), p95: at(0.95), max: times[times.length - 1], limit: members[members.length - 1].timeout_ms };
  }).sort((a, b) => b.count - a.count).slice(0, 60);
  let top = 1;
  for (const each of found) top = Math.max(top, each.max, each.limit);
  const x = (ms) => (Math.log10(Math.max(ms, least) / least) / Math.log10((top * 1.2) / least)) * 100;
  const table = $("by-scenario");
  if (!found.length) { table.replaceChildren(el("tr", {}, el("td", { class: "soft" }, t("plot_none")))); return; }
  table.replaceChildren(el("tr", {}, el("th"), el("th"), el("th", { class: "num" }, t("calls_n")), el("th", { class: "num" }, t("median")), el("th", { class: "num" }, t("p95"))), ...found.map((each) => {
    const picture = svg("svg", { viewBox: "0 0 100 16", preserveAspectRatio: "none" },
      svg("rect", { x: 0, y: 7, width: x(each.max), height: 2, fill: "var(--line)" }),
      svg("rect", { x: 0, y: 4, width: x(each.p95), height: 8, fill: "var(--wash)" }),
      svg("rect", { x: Math.max(0, x(each.median) - 1), y: 2, width: 2, height: 12, fill: each.median > each.limit ? "var(--bad)" : "var(--accent)" }),
      svg("line", { x1: x(each.limit), x2: x(each.limit), y1: 0, y2: 16, stroke: "var(--bad)", "stroke-dasharray": "2 2", "vector-effect": "non-scaling-stroke" }));
    return el("tr", { title: `${t("max")} ${milliseconds(each.max)}` }, el("td", { class: "mono" }, each.name), el("td", {}, picture), el("td", { class: "num" }, number(each.count)), el("td", { class: "num" }, milliseconds(each.median)), el("td", { class: "num" }, milliseconds(each.p95)));
  }));
}
addEventListener("resize", plotSoon);

