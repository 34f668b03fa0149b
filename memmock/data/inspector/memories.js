// ---- the memories
let memories = null, editing = null, tryTypes = new Set();
async function loadMemories() {
  const answer = await attempt(() => api("GET", "memories"));
  if (!answer) return;
  memories = answer.memories;
  showMemories();
  rankSoon();
}
function showMemories() {
  if (!memories) return;
  const words = $("memory-search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const found = memories.map((memory, index) => [memory, index]).filter(([memory]) => words.every((word) => `${memory.summary} ${memory.type ?? ""} ${memory.id ?? ""} ${(memory.keywords ?? []).join(" ")}`.toLowerCase().includes(word)));
  $("memory-count").textContent = words.length ? t("of_count", number(found.length), number(memories.length)) : number(memories.length);
  const shown = found.slice(0, 300).map(([memory, index]) => el("button", { class: "memory", type: "button", "data-index": index, "aria-pressed": String(editing === index), onclick: () => edit(index) },
    el("span", { class: "id soft mono" }, memory.id ?? ""), el("span", {}, memory.summary),
    el("span", { class: "soft num" }, [memory.type, memory.confidence].filter((each) => each !== undefined && each !== null).join(" · "))));
  if (found.length > shown.length) shown.push(el("div", { class: "empty" }, t("more", number(found.length - shown.length))));
  $("memory-list").replaceChildren(...shown);
}
const TEXTS = ["summary", "id", "source", "updated_at", "type"];
function edit(index) {
  editing = index;
  const memory = index === null || index < 0 ? {} : memories[index];
  $("memory-form").hidden = index === null;
  if (index === null) { showMemories(); return; }
  $("memory-title").textContent = t(index < 0 ? "new_memory" : "edit_memory");
  $("memory-delete").hidden = index < 0;
  for (const name of TEXTS) $("m-" + name).value = memory[name] ?? "";
  $("m-confidence").value = memory.confidence ?? "";
  $("m-keywords").value = (memory.keywords ?? []).join(", ");
  showMemories();
  $("m-summary").focus();
}
function edited() {
  const memory = {};
  for (const name of TEXTS) if ($("m-" + name).value.trim()) memory[name] = $("m-" + name).value.trim();
  if ($("m-confidence").value !== "") memory.confidence = Number($("m-confidence").value);
  const words = $("m-keywords").value.split(/[,，]/).map((word) => word.trim()).filter(Boolean);
  if (words.length) memory.keywords = words;
  return memory;
}
async function setMemories(action, said) {
  const answer = await attempt(action);
  if (!answer) return;
  memories = answer.memories;
  edit(null);
  rankSoon();
  toast(said(answer));
}
$("memory-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const index = editing, memory = edited();
  if (index < 0) setMemories(() => api("POST", "memories", { memories: [memory] }), () => t("saved"));
  else setMemories(() => api("PUT", "memories", { memories: memories.map((each, at) => (at === index ? memory : each)) }), () => t("saved"));
});
$("memory-delete").addEventListener("click", () => setMemories(() => api("PUT", "memories", { memories: memories.filter((_, at) => at !== editing) }), () => t("deleted")));
$("memory-close").addEventListener("click", () => edit(null));
$("memory-add").addEventListener("click", () => edit(-1));
$("memory-search").addEventListener("input", showMemories);
$("import-label").addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); $("import").click(); } });
$("import").addEventListener("change", async () => {
  const file = $("import").files[0];
  if (!file) return;
  const text = await file.text();
  $("import").value = "";
  setMemories(() => api("PUT", "persona", { text, format: /\.json$/i.test(file.name) ? "json" : "yaml" }), (answer) => t("imported", answer.memories.length));
});
$("export").addEventListener("click", async () => {
  const persona = await attempt(() => api("GET", "persona"));
  if (!persona) return;
  const link = el("a", { download: "persona.json", href: URL.createObjectURL(new Blob([JSON.stringify(persona, null, 2) + "\n"], { type: "application/json" })) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
});
function makeDemo() {
  $("demo").replaceChildren(...hello.demo.map((each, at) => el("button", { type: "button", "data-demo": at, onclick: () => { $("try-query").value = each.query; rank(); } }, each.query)));
  $("m-type").replaceChildren(el("option", { value: "" }, "–"), ...hello.memory_types.map((kind) => el("option", {}, kind)));
  $("try-types").replaceChildren(...hello.memory_types.map((kind) => el("button", { type: "button", "aria-pressed": String(tryTypes.has(kind)), onclick: (event) => {
    if (!tryTypes.delete(kind)) tryTypes.add(kind);
    event.currentTarget.setAttribute("aria-pressed", String(tryTypes.has(kind)));
    rank();
  } }, kind)));
}
let rankTimer = 0, rankNumber = 0, ranked = null;
function rankSoon() { clearTimeout(rankTimer); rankTimer = setTimeout(rank, 120); }
for (const id of ["try-query", "try-hint", "try-max"]) $(id).addEventListener("input", rankSoon);
async function rank() {
  const query = $("try-query").value, mine = ++rankNumber;
  if (!query) { ranked = null; showRanking(); return; }
  const answer = await attempt(() => api("POST", "rank", { query, time_hint: $("try-hint").value, max_results: Math.max(1, Math.round(Number($("try-max").value) || 1)), memory_types: [...tryTypes] }));
  if (!answer || mine !== rankNumber) return;
  ranked = answer;
  showRanking();
}
const marked = (parts) => parts.map(([text, hit]) => (hit ? el("mark", {}, text) : text));
function showRanking() {
  const demo = hello && hello.demo.find((each) => each.query === $("try-query").value);
  if (!ranked) { $("ranking").replaceChildren(); $("try-note").textContent = ""; return; }
  const sent = ranked.ranking.filter((each) => each.sent).length;
  $("try-note").textContent = t("ranks", number(ranked.found), sent, ranked.left_out) + (demo ? " " + t("ask_then", demo.question, demo.point) : "");
  const parts = [];
  ranked.ranking.forEach((each, at) => {
    if (at === sent && at > 0) parts.push(el("div", { class: "cut" }, t("cut_here")));
    if (at >= 40) return;
    const words = el("div", { class: "small" }, [each.id, each.type].filter(Boolean).join(" · "));
    for (const word of each.keywords) words.append(" · ", ...marked(word));
    parts.push(el("div", { class: "ranked" + (each.sent ? "" : " unsent"), "data-id": each.id }, el("span", { class: "soft num" }, String(at + 1)), el("span", {}, ...marked(each.summary)), el("span", { class: "num soft" }, String(each.score)), words));
  });
  $("ranking").replaceChildren(...parts);
}

