// ---- a call opened
const detail = $("detail");
const tabOf = { request: "pretty", reply: "pretty" };
let shownCall = null;
function closeDetail(focuses = true) {
  openedNumber = 0;
  shownCall = null;
  detail.hidden = true;
  detail.replaceChildren();
  $("calls").classList.remove("opened");
  if (focuses) list.focus();
}
async function open(n, focuses = true) {
  const fresh = openedNumber !== n;
  openedNumber = n;
  detail.hidden = false;
  $("calls").classList.add("opened");
  if (fresh && !shownCall) detail.replaceChildren(el("div", { class: "empty" }, t("loading")));
  let call;
  try { call = await api("GET", "call?number=" + n); } catch (error) {
    if (openedNumber !== n) return;
    shownCall = null;
    const said = error.status === 404 && hello ? t("gone_call", n, number(hello.kept)) : error.message;
    detail.replaceChildren(topOf(byNumber.get(n), null), el("div", { class: "empty" }, said));
    return;
  }
  if (openedNumber !== n) return;
  shownCall = call;
  showCall(fresh);
  if (focuses && matchMedia("(max-width: 860px)").matches) detail.focus();
}
function topOf(row, call) {
  const close = el("button", { class: "quiet", id: "close-detail", onclick: () => closeDetail(), "aria-label": t("close"), title: "Escape" }, "✕");
  if (!row) return el("div", { class: "top" }, el("div", { class: "title" }, el("strong"), close));
  const [text, kind] = outcomeOf(row);
  return el("div", { class: "top" },
    el("div", { class: "title" }, el("span", { class: "soft num" }, `#${row.number}`), el("strong", {}, row.query ?? `${row.method} ${row.target}`), close),
    el("div", { class: "row-of" },
      el("span", { class: "pill " + kind }, text),
      el("span", { class: "soft num" }, `${clock(row.at)} · ${milliseconds(row.ms)} / ${number(row.timeout_ms)} ms`),
      el("span", { class: "mono" }, row.played || row.recording),
      ...(row.types.length ? row.types : [t("all_types")]).map((kind) => el("span", { class: "chip" }, kind))),
    call && el("div", { class: "row-of" }, el("span", { class: "soft" }, t("copy")),
      ...["curl", "pytest", "cassette"].map((name) => el("button", { onclick: () => copy(call.copies[name]), "data-copy": name }, name))));
}
function showCall(fresh) {
  const call = shownCall;
  if (!call) return;
  const scrolled = detail.scrollTop;
  const blocks = [topOf(call, call)];
  if (call.scenario) blocks.push(el("div", { class: "block" }, el("div", {}, sentence(call.scenario.name, call.scenario.summary)),
    call.scenario.outcomes.length ? el("div", { class: "soft" }, t("expects", call.scenario.outcomes.join(", "))) : null));
  if (call.retry_of) blocks.push(el("div", { class: "block warn" }, t("retry_of", call.retry_of)));
  if (call.violations.length) blocks.push(el("div", { class: "block" }, el("h2", {}, t("violations")),
    ...call.violations.map((found, at) => el("button", { class: "finding", onclick: () => goTo(at) },
      el("b", { class: found.severity === "error" ? "bad" : "warn" }, found.code),
      el("span", { class: "soft" }, `${t(found.side)} · ${found.place}`), el("span", {}, found.message)))));
  blocks.push(messageBlock("request", call), messageBlock("reply", call));
  const model = el("div", { class: "block" }, el("div", { class: "head" }, el("h2", {}, t("model"))));
  model.append(call.model === null ? el("div", { class: "soft" }, t("no_model", call.timing.ending)) : jsonView(JSON.stringify(call.model), []));
  blocks.push(model, timingBlock(call));
  detail.replaceChildren(...blocks);
  detail.scrollTop = fresh ? 0 : scrolled;
}
function bytesOf(base64) { return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0)); }
function messageBlock(side, call) {
  const message = call[side], found = call.violations.filter((each) => each.side === side);
  const content = el("div", { class: "stack" });
  const tabs = el("div", { class: "tabs", role: "tablist" });
  const names = ["pretty", "raw", "headers", "bytes"];
  const show = (name) => {
    tabOf[side] = name;
    for (const each of tabs.children) {
      each.setAttribute("aria-selected", String(each.dataset.name === name));
      each.tabIndex = each.dataset.name === name ? 0 : -1;
    }
    content.replaceChildren(...viewOf(side, name, message, call, found));
  };
  for (const name of names) tabs.append(el("button", { role: "tab", "data-name": name, onclick: () => show(name) }, t(name)));
  arrows(tabs, (button) => button.click());
  const block = el("div", { class: "block", "data-side": side },
    el("div", { class: "head" }, el("h2", {}, t(side)), el("span", { class: "soft num" }, t("size", number(message.size))), tabs), content);
  block.show = show;
  show(tabOf[side]);
  return block;
}
function noteOf(found) {
  const at = shownCall.violations.indexOf(found);
  return el("div", { class: "note" + (found.severity === "error" ? "" : " mild"), "data-at": at }, el("b", { class: found.severity === "error" ? "bad" : "warn" }, found.code), found.message, el("p", {}, sentence(found.code, found.reason)));
}
function viewOf(side, name, message, call, found) {
  const body = bytesOf(message.body), text = new TextDecoder().decode(body);
  const cut = message.cut ? [el("div", { class: "soft" }, t("cut", number(body.length), number(message.size)))] : [];
  const line = side === "request" ? message.line : call.status ? `HTTP/1.1 ${call.status}` : "";
  if (name === "headers") {
    const table = el("table", { class: "head-table mono" });
    const heads = found.filter((each) => each.where === "header" || (each.pointer && each.where !== "body"));
    for (const [key, value] of message.headers) {
      const notes = heads.filter((each) => each.pointer.toLowerCase() === key.toLowerCase());
      table.append(el("tr", { class: notes.length ? "place" + (notes.some((each) => each.severity === "error") ? "" : " mild") : null }, el("td", {}, key), el("td", {}, value, ...notes.map(noteOf))));
    }
    const there = new Set(message.headers.map(([key]) => key.toLowerCase()));
    for (const each of heads.filter((one) => !there.has(one.pointer.toLowerCase()))) table.append(el("tr", { class: "place" + (each.severity === "error" ? "" : " mild") }, el("td", {}, each.pointer), el("td", {}, t("absent"), noteOf(each))));
    return [el("div", { class: "mono soft" }, line), table];
  }
  if (name === "bytes") return [el("pre", { class: "bytes" }, hexdump(side === "reply" ? bytesOf(message.wire.bytes) : body)), ...cut];
  if (name === "raw") {
    if (side === "reply") return [el("pre", {}, new TextDecoder().decode(bytesOf(message.wire.bytes)) || t("no_body"))];
    return [el("pre", {}, `${line}\n${message.headers.map(([key, value]) => `${key}: ${value}\n`).join("")}\n${text}`), ...cut];
  }
  const above = found.filter((each) => each.where !== "body" && each.where !== "header" && !each.pointer);
  const parts = [];
  if (above.length) parts.push(el("div", { class: "mono soft" }, line), ...above.map(noteOf));
  const inBody = found.filter((each) => each.where === "body");
  if (!body.length) parts.push(el("div", { class: "soft" }, t("no_body")), ...inBody.map(noteOf));
  else parts.push(jsonView(text, inBody));
  return [...parts, ...cut];
}
/** A string of JSON with its escapes undone where they stand for what can be read. */
const readable = (raw) => (raw.includes("\\u") ? JSON.stringify(JSON.parse(raw)) : raw);
/** Show JSON in lines, with each violation at its place; text that is not JSON as it is. */
function jsonView(text, found) {
  let top;
  try { top = parsed(text); } catch {
    return el("div", { class: "stack" }, el("div", { class: "soft" }, t("no_json")), el("pre", {}, text.slice(0, 65536)), ...found.map(noteOf));
  }
  const lines = [], at = new Map();
  const put = (pointer, depth, ...parts) => {
    if (!at.has(pointer)) at.set(pointer, lines.length);
    lines.push(el("div", { class: "l" }, "  ".repeat(depth), ...parts));
  };
  const walk = (node, pointer, depth, before, after) => {
    if (lines.length > 3000) return;
    if (!node.items) { put(pointer, depth, ...before, el("span", { class: node.raw[0] === '"' ? "s" : "n" }, readable(node.raw)), after); return; }
    const [start, end] = node.array ? "[]" : "{}";
    if (!node.items.length) { put(pointer, depth, ...before, start + end + after); return; }
    put(pointer, depth, ...before, start);
    node.items.forEach(([key, name, child], index) => {
      const comma = index < node.items.length - 1 ? "," : "";
      const step = String(name).replaceAll("~", "~0").replaceAll("/", "~1");
      walk(child, `${pointer}/${step}`, depth + 1, node.array ? [] : [el("span", { class: "k" }, readable(key)), ": "], comma);
    });
    lines.push(el("div", { class: "l" }, "  ".repeat(depth), end + after));
  };
  walk(top, "", 0, [], "");
  const notes = new Map();
  for (const each of found) {
    let pointer = each.pointer;
    while (pointer && !at.has(pointer)) pointer = pointer.slice(0, pointer.lastIndexOf("/"));
    const index = at.get(pointer) ?? 0;
    lines[index].classList.add("place");
    if (each.severity !== "error" && !notes.has(index)) lines[index].classList.add("mild");
    if (each.severity === "error") lines[index].classList.remove("mild");
    notes.set(index, [...(notes.get(index) ?? []), noteOf(each)]);
  }
  const box = el("div", { class: "json" });
  lines.forEach((line, index) => box.append(line, ...(notes.get(index) ?? [])));
  return box;
}
/** Parse JSON and keep its text: numbers beyond a double and names that are repeated are shown as they came. */
function parsed(text) {
  let at = 0;
  const token = /[ \t\r\n]*(?:([{}[\],:])|("(?:[^"\\]|\\.)*")|([^\s{}[\],:"]+))/y;
  const next = () => {
    token.lastIndex = at;
    const match = token.exec(text);
    if (!match) throw new SyntaxError("no JSON");
    at = token.lastIndex;
    return match;
  };
  const peek = () => { const before = at, match = next(); at = before; return match[1]; };
  const value = (depth) => {
    if (depth > 200) throw new SyntaxError("nested too deeply");
    const match = next();
    if (match[2] || match[3]) {
      if (match[3] && !/^(?:true|false|null|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|-?Infinity|NaN)$/.test(match[3])) throw new SyntaxError("no value");
      return { raw: match[2] ?? match[3] };
    }
    const items = [];
    if (match[1] === "[") {
      if (peek() === "]") { next(); return { array: true, items }; }
      for (;;) {
        items.push([null, items.length, value(depth + 1)]);
        const end = next()[1];
        if (end === "]") return { array: true, items };
        if (end !== ",") throw new SyntaxError("no array");
      }
    }
    if (match[1] !== "{") throw new SyntaxError("no value");
    if (peek() === "}") { next(); return { array: false, items }; }
    for (;;) {
      const name = next()[2];
      if (!name || next()[1] !== ":") throw new SyntaxError("no object");
      items.push([name, JSON.parse(name), value(depth + 1)]);
      const end = next()[1];
      if (end === "}") return { array: false, items };
      if (end !== ",") throw new SyntaxError("no object");
    }
  };
  const top = value(0);
  if (text.slice(at).trim()) throw new SyntaxError("more than one value");
  return top;
}
function hexdump(bytes) {
  const lines = [];
  const shown = Math.min(bytes.length, 16384);
  for (let at = 0; at < shown; at += 16) {
    const part = [...bytes.subarray(at, Math.min(at + 16, shown))];
    const hex = part.map((byte) => byte.toString(16).padStart(2, "0"));
    const text = part.map((byte) => (byte > 31 && byte < 127 ? String.fromCharCode(byte) : "·")).join("");
    lines.push(`${at.toString(16).padStart(6, "0")}  ${hex.slice(0, 8).join(" ").padEnd(23)}  ${hex.slice(8).join(" ").padEnd(23)}  ${text}`);
  }
  if (shown < bytes.length) lines.push(t("cut", number(shown), number(bytes.length)));
  return lines.join("\n") || t("no_body");
}
function goTo(at) {
  const found = shownCall.violations[at];
  const block = detail.querySelector(`[data-side="${found.side}"]`);
  block.show(found.where === "header" || (found.pointer && found.where !== "body") ? "headers" : "pretty");
  const note = block.querySelector(`[data-at="${at}"]`);
  if (!note) return;
  note.scrollIntoView({ block: "center" });
  note.classList.remove("flash");
  void note.offsetWidth;
  note.classList.add("flash");
}
function timingBlock(call) {
  const { timing } = call, width = 600;
  const most = Math.max(timing.timeout_ms, timing.elapsed_ms) * 1.04 || 1;
  const x = (ms) => (Math.min(ms, most) / most) * width;
  const delay = Math.min(timing.delay_ms, Math.max(0, timing.elapsed_ms - timing.found_ms));
  const spans = [["found", 0, timing.found_ms, "--accent"], ["delay", timing.found_ms, timing.found_ms + delay, "--warn"], ["sending", timing.found_ms + delay, timing.elapsed_ms, "--ok"]];
  const picture = svg("svg", { viewBox: `0 0 ${width} 40`, role: "img", "aria-label": t("timing") });
  picture.append(svg("rect", { x: 0, y: 10, width, height: 12, rx: 3, fill: "var(--sunk)" }));
  for (const [, from, to, color] of spans) if (to > from) picture.append(svg("rect", { x: x(from), y: 10, width: Math.max(1.5, x(to) - x(from)), height: 12, fill: `var(${color})` }));
  const limit = x(timing.timeout_ms);
  picture.append(svg("line", { x1: limit, x2: limit, y1: 4, y2: 28, stroke: "var(--bad)", "stroke-width": 1.5, "stroke-dasharray": "3 2" }), svg("text", { x: limit, y: 38, "text-anchor": "end" }, `timeout_ms ${number(timing.timeout_ms)}`));
  const table = el("table", {});
  for (const [name, from, to, color] of spans) if (to - from > 0) table.append(el("tr", {}, el("td", {}, dot(color), t(name)), el("td", { class: "num" }, milliseconds(to - from))));
  const delivery = Object.entries(timing.delivery);
  if (delivery.length) table.append(el("tr", {}, el("td", {}, t("timing_delivery")), el("td", { class: "mono" }, delivery.map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`).join("  "))));
  return el("div", { class: "block" }, el("div", { class: "head" }, el("h2", {}, t("timing")), el("span", { class: "soft" }, timing.ending), call.connection ? el("span", { class: "soft" }, "· " + t("connection", call.connection)) : null), picture, table);
}
function dot(color) {
  const made = el("i");
  Object.assign(made.style, { display: "inline-block", width: "8px", height: "8px", borderRadius: "2px", marginRight: "6px", background: `var(${color})` });
  return made;
}
let copiedFrom = null;
async function copy(text) {
  try { await navigator.clipboard.writeText(text); toast(t("copied")); } catch {
    const box = $("copybox").querySelector("textarea");
    copiedFrom = document.activeElement;
    box.value = text;
    $("copybox").hidden = false;
    box.focus();
    box.select();
  }
}
function closeCopybox() {
  $("copybox").hidden = true;
  copiedFrom?.focus();
}
$("copybox-close").addEventListener("click", closeCopybox);
// the focus stays in the box: behind it nothing can be used
$("copybox").addEventListener("keydown", (event) => {
  if (event.key !== "Tab") return;
  event.preventDefault();
  (document.activeElement === $("copybox-close") ? $("copybox").querySelector("textarea") : $("copybox-close")).focus();
});

