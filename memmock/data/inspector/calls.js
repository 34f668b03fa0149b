// ---- the calls
const MOST = 10000, SLACK = 500;
let cleared = {};
try { cleared = JSON.parse(sessionStorage.getItem("memmock-cleared")) || {}; } catch { /* as above */ }
let last = cleared.since || 0, rows = [], byNumber = new Map(), view = [], missed = 0;
let paused = false, held = [], filter = "all", sought = [], chosen = 0, openedNumber = 0, rowHeight = 32;
const isFailed = (row) => row.over && row.outcome !== "ok";
const isBroken = (row) => row.codes.length > 0;
const FILTERS = { all: () => true, failed: isFailed, broken: isBroken, scenarios: (row) => row.played !== "" };
function textOf(row) {
  return (row.text ??= [row.number, row.query ?? "", row.types.join(" "), row.played, row.recording, row.outcome, row.status, row.error, row.codes.join(" "), row.target].join(" ").toLowerCase());
}
const passes = (row) => FILTERS[filter](row) && sought.every((word) => textOf(row).includes(word));
function hold(values) {
  held.push(...values);
  if (held.length > MOST + SLACK) { missed += held.length - MOST; held = held.slice(-MOST); showMissed(); }
  showPause();
}
function add(values) {
  let added = 0, rebuild = false;
  for (const value of values) {
    const known = byNumber.get(value.number);
    if (known) {
      known.text = undefined;
      Object.assign(known, value);
      rebuild ||= filter !== "all" || sought.length > 0;
      if (known.number === openedNumber) open(known.number, false);
      continue;
    }
    if (value.number <= last) continue;
    last = value.number;
    rows.push(value);
    byNumber.set(value.number, value);
    if (passes(value)) { view.push(value); added += 1; }
  }
  if (rows.length > MOST + SLACK) {
    for (const gone of rows.splice(0, rows.length - MOST)) byNumber.delete(gone.number);
    const first = rows[0].number, at = view.findIndex((row) => row.number >= first);
    view.splice(0, at < 0 ? view.length : at);
  }
  if (rebuild) refilter();
  if (added && list.scrollTop > 0) list.scrollTop += added * rowHeight;  // what is being read stays in its place
  render();
  if (!$("times").hidden) plotSoon();
}
function refilter() { view = rows.filter(passes); render(); }
function forget() {
  rows = []; view = []; held = []; missed = 0; byNumber.clear(); chosen = 0;
  closeDetail(false);
  showMissed(); showPause(); render(); plotSoon();
}
function showMissed() {
  $("missed").hidden = !missed;
  $("missed").textContent = t("missed", number(missed));
}
function showPause() {
  $("pause").textContent = paused ? `${t("resume")}${held.length ? ` (${number(held.length)})` : ""}` : t("pause");
  $("pause").setAttribute("aria-pressed", String(paused));
}
function togglePause() {
  paused = !paused;
  if (!paused) { const values = held; held = []; add(values); }
  showPause();
}
const list = $("list"), space = $("space"), pool = [];
function makeLine() {
  const parts = {};
  const line = el("div", { class: "line", role: "option" });
  for (const name of ["time", "query", "played", "outcome", "ms", "rules"]) line.append(parts[name] = el("span", { class: "c-" + name }));
  parts.time.classList.add("num", "mono");
  parts.played.classList.add("mono");
  parts.pill = el("span");
  parts.outcome.append(parts.pill);
  parts.bar = el("b");
  parts.took = el("span");
  parts.ms.classList.add("meter");
  parts.ms.append(el("i", {}, parts.bar), parts.took);
  line.addEventListener("click", () => { chosen = line.number; open(line.number); render(); });
  line.parts = parts;
  space.append(line);
  pool.push(line);
  return line;
}
const clock = (at) => {
  const date = new Date(at), two = (n) => String(n).padStart(2, "0");
  return `${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}.${String(date.getMilliseconds()).padStart(3, "0")}`;
};
function outcomeOf(row) {
  if (!row.over) return [t("under_way"), "none"];
  if (row.outcome === "ok") return [`${t("o_ok")} · ${row.results}`, "ok"];
  if (row.outcome === "http_error") return [`${t("o_http_error")} ${row.status}`, "bad"];
  return row.outcome ? [t("o_" + row.outcome), "bad"] : [t("unknown"), "none"];
}
function fill(line, row, index) {
  const { parts } = line;
  line.number = row.number;
  line.id = "call-" + row.number;
  line.style.transform = `translateY(${index * rowHeight}px)`;
  line.setAttribute("aria-selected", String(row.number === chosen));
  line.setAttribute("aria-setsize", view.length);
  line.setAttribute("aria-posinset", index + 1);
  line.classList.toggle("broken", isBroken(row));
  line.classList.toggle("mild", row.errors === 0);
  const [text, kind] = outcomeOf(row);
  const key = `${row.number} ${text} ${row.ms} ${language}`;
  if (line.key === key) return;
  line.key = key;
  parts.time.textContent = clock(row.at);
  const query = row.query ?? `${row.method} ${row.target}`;
  parts.query.replaceChildren(el("span", { class: row.query === null ? "odd" : null }, query), ...row.types.map((kind) => el("span", { class: "chip" }, kind)));
  parts.query.title = query;
  const played = row.played || row.recording;
  parts.played.textContent = played || (hello && hello.mock && row.outcome === "ok" ? t("honest") : "");
  parts.played.classList.toggle("soft", !played);
  parts.played.title = played;
  parts.pill.textContent = text;
  parts.pill.className = "pill " + kind;
  parts.took.textContent = milliseconds(row.ms);
  parts.ms.title = `${row.ms} / ${number(row.timeout_ms)} ms`;
  parts.ms.classList.toggle("over", row.ms > row.timeout_ms);
  parts.bar.style.transform = `scaleX(${Math.min(1, row.ms / row.timeout_ms)})`;
  parts.rules.textContent = row.codes.length > 1 ? `${row.codes[0]} +${row.codes.length - 1}` : row.codes[0] ?? "";
  parts.rules.className = "c-rules mono " + (row.errors ? "bad" : "warn");
  parts.rules.title = row.codes.join(", ");
}
let rendering = false;
function render() {
  if (rendering) return;
  rendering = true;
  requestAnimationFrame(() => { rendering = false; renderNow(); });
}
function renderNow() {
  const total = view.length;
  space.style.height = `${total * rowHeight}px`;
  const first = Math.max(0, Math.floor(list.scrollTop / rowHeight) - 4);
  const end = Math.min(total, first + Math.ceil(list.clientHeight / rowHeight) + 8);
  let used = 0;
  for (let index = first; index < end; index += 1) fill(pool[used++] ?? makeLine(), view[total - 1 - index], index);
  for (let at = 0; at < pool.length; at += 1) {
    const hidden = at >= (end - first);
    pool[at].hidden = hidden;
    if (hidden) { pool[at].removeAttribute("id"); pool[at].key = undefined; }
  }
  const shown = byNumber.has(chosen) && $("call-" + chosen);
  if (shown) list.setAttribute("aria-activedescendant", shown.id); else list.removeAttribute("aria-activedescendant");
  $("nothing").hidden = total > 0;
  if (!total) showNothing();
  if (filter === "all" && !sought.length) {
    let failed = 0, broken = 0;
    for (const row of rows) { failed += isFailed(row); broken += isBroken(row); }
    $("counts").textContent = t("counts", number(rows.length), number(failed), number(broken));
  } else $("counts").textContent = t("counts_of", number(total), number(rows.length));
}
/** Say why no call is shown, and how to make one. */
function showNothing() {
  const live = hello && hello.kind === "live";
  $("nothing").firstChild.textContent = t(rows.length ? "no_match" : live ? "nothing_live" : "nothing");
  $("nothing").lastChild.hidden = rows.length > 0 || !hello;
  if (!hello || rows.length) return;
  const { query } = hello.demo[1];
  $("nothing").lastChild.textContent = live
    ? `memmock ask --live ${hello.endpoint} --live-id ID '${query}'`
    : `curl -s '${hello.endpoint}' -H 'Content-Type: application/json' -H 'Accept: application/json' -H 'Authorization: Bearer memmock' -d '{"query": "${query}"}'`;
}
list.addEventListener("scroll", render, { passive: true });
new ResizeObserver(() => {
  const narrow = $("pane").clientWidth < 700;
  $("pane").classList.toggle("narrow", narrow);
  const index = list.scrollTop / rowHeight;
  rowHeight = narrow ? 56 : 32;
  list.scrollTop = index * rowHeight;
  render();
}).observe($("pane"));
function choose(index, opens) {
  if (!view.length) return;
  index = Math.max(0, Math.min(view.length - 1, index));
  chosen = view[view.length - 1 - index].number;
  const top = index * rowHeight;
  if (top < list.scrollTop) list.scrollTop = top;
  else if (top + rowHeight > list.scrollTop + list.clientHeight) list.scrollTop = top + rowHeight - list.clientHeight;
  renderNow();
  if (opens || openedNumber) openSoon(chosen);
}
const indexOf = (n) => { const at = view.findIndex((row) => row.number === n); return at < 0 ? -1 : view.length - 1 - at; };
list.addEventListener("keydown", (event) => {
  const page = Math.max(1, Math.floor(list.clientHeight / rowHeight) - 1), at = indexOf(chosen);
  const moves = { ArrowDown: at + 1, ArrowUp: at < 0 ? 0 : at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: view.length - 1 };
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key in moves) choose(moves[event.key], false);
  else if ((event.key === "Enter" || event.key === " ") && at >= 0) open(chosen, true);
  else return;
  event.preventDefault();
});
let openTimer = 0;
function openSoon(n) { clearTimeout(openTimer); openTimer = setTimeout(() => open(n, false), 60); }
$("search").addEventListener("input", () => { sought = $("search").value.toLowerCase().split(/\s+/).filter(Boolean); list.scrollTop = 0; refilter(); });
$("search").addEventListener("keydown", (event) => { if (event.key === "ArrowDown" || event.key === "Enter") { event.preventDefault(); list.focus(); if (indexOf(chosen) < 0) choose(0, false); } });
$("pause").addEventListener("click", togglePause);
$("clear").addEventListener("click", () => { forget(); remember(); });
/** What was cleared stays cleared when the page is loaded again, as long as it is the same server. */
function remember() { try { sessionStorage.setItem("memmock-cleared", JSON.stringify({ server: hello.server, since: last })); } catch { /* as above */ } }
for (const name of Object.keys(FILTERS)) {
  $("filters").append(el("button", { "data-t": name, "aria-pressed": String(name === filter), onclick: (event) => {
    filter = name;
    for (const each of $("filters").children) each.setAttribute("aria-pressed", String(each === event.currentTarget));
    list.scrollTop = 0;
    refilter();
  } }));
}

