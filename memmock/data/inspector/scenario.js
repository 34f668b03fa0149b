// ---- the scenario
let state = { rules: [], memories: { count: 0, version: 0 } }, catalogue = [], use = null, memoryVersion = null;
const FIELDS = ["query", "memory_types", "live_id", "reason", "time_hint", "max_results"];
async function loadCatalogue() {
  const answer = await attempt(() => api("GET", "scenarios"));
  if (!answer) return;
  catalogue = answer.scenarios;
  showCatalogue();
}
function showCatalogue() {
  if (!hello) return;
  const words = $("scenario-search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const openNow = new Map([...$("catalogue").children].map((each) => [each.dataset.family, each.open]));
  const parts = [];
  for (const family of [...hello.families, "own"]) {
    const members = catalogue.filter((each) => each.family === family && words.every((word) => `${each.name} ${each.summary} ${sentence(each.name, "")} ${each.outcomes.join(" ")} ${each.aliases.join(" ")}`.toLowerCase().includes(word)));
    if (!members.length) continue;
    const box = el("details", { "data-family": family, open: words.length > 0 || (openNow.get(family) ?? parts.length === 0) }, el("summary", {}, t("f_" + family), el("span", { class: "soft" }, String(members.length))));
    for (const each of members) box.append(el("button", { class: "scenario", type: "button", "aria-pressed": String(use === each), "data-scenario": each.name, onclick: () => pick(each) },
      el("span", { class: "name" }, each.name), el("span", { class: "sentence" }, sentence(each.name, each.summary)), el("span", { class: "soft mono" }, each.outcomes.join(", "))));
    parts.push(box);
  }
  $("catalogue").replaceChildren(...parts);
}
function pick(scenario) {
  use = scenario;
  for (const each of $("catalogue").querySelectorAll(".scenario")) each.setAttribute("aria-pressed", String(each.dataset.scenario === scenario.name));
  showUse();
  if (matchMedia("(max-width: 860px)").matches) $("use-form").scrollIntoView({ block: "center" });
}
function showUse() {
  $("use").disabled = !use;
  $("chosen").replaceChildren(use ? el("div", {}, el("strong", { class: "mono" }, use.name), el("div", { class: "soft" }, sentence(use.name, use.summary))) : el("span", { class: "soft" }, t("choose")));
  $("parameters").replaceChildren(...Object.entries(use ? use.parameters : {}).map(([name, value]) => el("label", { class: "field" }, el("span", {}, name), el("input", { type: "number", step: "any", min: 0, placeholder: value, "data-parameter": name }))));
}
function addCondition() {
  const row = el("div", { class: "row-of" },
    el("select", { "aria-label": t("when") }, ...FIELDS.map((name) => el("option", {}, name))),
    el("input", { class: "grow", placeholder: t("values_help"), "aria-label": t("values_help") }),
    el("button", { type: "button", class: "quiet", "aria-label": t("delete"), onclick: () => row.remove() }, "✕"));
  $("conditions").append(row);
}
$("add-condition").addEventListener("click", addCondition);
$("scenario-search").addEventListener("input", showCatalogue);
$("use-form").addEventListener("submit", (event) => {
  event.preventDefault();
  if (!use) return;
  const body = { use: use.name }, parameters = {}, when = {};
  for (const input of $("parameters").querySelectorAll("input")) if (input.value !== "") parameters[input.dataset.parameter] = Number(input.value);
  for (const row of $("conditions").children) {
    const name = row.children[0].value, value = row.children[1].value;
    if (value === "") continue;
    when[name] = name === "max_results" ? Number(value) : name === "memory_types" ? value.split(/[,，\s]+/).filter(Boolean) : value;
  }
  if (Object.keys(parameters).length) body.with = parameters;
  if (Object.keys(when).length) body.when = when;
  if ($("use-times").value) body.times = Number($("use-times").value);
  if ($("use-for").value) body.for_s = Number($("use-for").value);
  attempt(() => api("PUT", "scenario", body));
});
// what is played is not taken from these answers: the stream tells it, as when somebody else changes it
$("clear-rules").addEventListener("click", () => attempt(() => api("DELETE", "scenario")));
$("plan-form").addEventListener("submit", (event) => { event.preventDefault(); attempt(() => api("PUT", "plan", { plan: $("plan-text").value })); });
$("clear-plan").addEventListener("click", () => attempt(() => api("DELETE", "plan")));
$("chaos-form").addEventListener("submit", (event) => { event.preventDefault(); attempt(() => api("PUT", "chaos", { chaos: $("chaos-text").value, seed: Math.round(Number($("chaos-seed").value)) })); });
$("clear-chaos").addEventListener("click", () => attempt(() => api("DELETE", "chaos")));
function showRules() {
  if (!state.rules.length) { $("rules-now").replaceChildren(el("span", { class: "soft" }, t("honest_now"))); return; }
  $("rules-now").replaceChildren(...state.rules.map((rule) => {
    const facts = [];
    if (rule.plan !== undefined) facts.push(t("planned"));
    if (rule.seed !== undefined) facts.push(t("chaos_rule", rule.seed));
    if (rule.when !== undefined) facts.push(typeof rule.when === "string" ? rule.when : Object.entries(rule.when).map(([name, value]) => `${name} = ${JSON.stringify(value)}`).join(", "));
    if (rule.for_s !== undefined) facts.push(t("for_more", Math.ceil(rule.for_s)));
    const steps = rule.steps.map((step) => `${rule.steps.length > 1 ? step.play + " " : ""}${step.times === null ? t("times_played", step.played) : t("times_of", step.played, step.times)}`);
    return el("div", { class: "rule" }, el("strong", { class: "mono" }, rule.plan ?? rule.chaos ?? rule.use), el("span", { class: "soft num" }, steps.length === 1 ? steps[0] : ""),
      el("span", { class: "soft" }, [...facts, ...(steps.length > 1 ? steps : [])].join(" · ")));
  }));
}
function stateChanged() {
  showRules();
  if (state.memories.version !== memoryVersion) { memoryVersion = state.memories.version; if (!$("memories").hidden) loadMemories(); else memories = null; }
}

