"use strict";
// ---- words
const WORDS = {
  en: {
    inspector: "inspector", calls: "Calls", call: "Call", scenario: "Scenario", memories: "Memories", durations: "Durations",
    token_needed: "This server asks for its control token:", use_it: "Use it",
    search: "Search  ( / )", all: "All", failed: "Failed", broken: "Rules broken", scenarios: "Scenarios",
    pause: "Pause", resume: "Resume", clear: "Clear", time: "Time", query: "Query", played: "Played", recording: "Recording",
    outcome: "Outcome", duration: "Duration", rules: "Rules", honest: "honest",
    no_scenario: "no scenario", under_way: "under way", unknown: "unknown", live: "live", connecting: "connecting", gone: "server gone, trying again",
    forbidden: "not allowed", counts: "{0} calls · {1} failed · {2} break rules", counts_of: "{0} of {1} calls",
    missed: "{0} calls came faster than they could be shown and are not in the list.",
    nothing: "No calls yet. Point a live session here, or ask it yourself:",
    nothing_live: "No calls yet. Create a live session here, and let it look memories up:", no_match: "No call matches. Escape clears the search.",
    loading: "Loading…", close: "Close", copy: "Copy as", copied: "Copied.", copy_by_hand: "The browser does not allow copying: copy this by hand.",
    violations: "Rules that were broken", request: "Request", reply: "Reply", pretty: "Pretty", raw: "Raw", headers: "Headers", bytes: "Bytes",
    model: "What the model is given", no_model: "Not known: {0}.", timing: "On the wire", no_body: "(no body)", cut: "The first {0} of {1} bytes.",
    size: "{0} bytes", found: "answer found", delay: "held back", sending: "sending", timing_delivery: "how it is sent",
    retry_of: "the same request as call {0}, which had failed", expects: "a good consumer shows {0}", absent: "(absent)",
    no_json: "Not JSON; shown as text.", connection: "connection {0}", all_types: "all types",
    catalogue: "Catalogue", search_scenarios: "Search scenarios", now: "What is played now", clear_all: "Clear all", set: "Set a scenario",
    next_n: "for the next … calls", for_s: "for … seconds", when: "only when the request has", always: "all", no_end: "no end",
    add_condition: "+ condition", play_it: "Play", plan: "Plan", plan_help: "One after the other, then what was played before.",
    chaos: "Chaos", chaos_help: "By chance, as scenario=chance; the same seed draws the same.", seed: "seed", stop: "Stop",
    honest_now: "Honest answers. No scenario is set.", choose: "Choose one from the catalogue.", times_of: "{0} of {1}", times_played: "played {0}×",
    for_more: "{0} s more", chaos_rule: "by chance, seed {0}", planned: "plan", values_help: "value",
    search_memories: "Search memories", add: "Add", import: "Import…", export: "Export", new_memory: "New memory", edit_memory: "Edit memory", delete: "Delete",
    save: "Save", saved: "Saved.", deleted: "Deleted.", imported: "{0} memories imported.", keywords: "keywords, with commas; never sent", of_count: "{0} of {1}",
    try_it: "Try a query", try_query: "What would be found for…", ranks: "{0} memories ranked, {1} sent; {2} of other types are left out.",
    cut_here: "max_results: from here on nothing is sent", ask_then: "Then ask the character: {0}  Its answer must show: {1}",
    over_time: "Durations over time", by_scenario: "By scenario", good: "memories in time", plot_none: "No calls yet.", plot_note: "{0} calls, on a logarithmic scale in ms.",
    calls_n: "calls", median: "median", p95: "p95", max: "max", theme_light: "Light", theme_dark: "Dark", more: "{0} more: search to find them.",
    restarted: "The server was started anew.", gone_call: "Call {0} is no longer kept by the server, which has the latest {1}.",
    f_answers: "Answers", f_statuses: "Statuses", f_bodies: "Bodies", f_sizes: "Sizes", f_timing: "Timing", f_connection: "Connection", f_own: "Your own",
    o_ok: "ok", o_timeout: "timeout", o_connection_failed: "connection_failed", o_http_error: "http_error", o_response_too_large: "response_too_large", o_invalid_json: "invalid_json", o_invalid_response: "invalid_response",
  },
  zh: {
    inspector: "检查器", calls: "调用", call: "调用", scenario: "场景", memories: "记忆", durations: "耗时",
    token_needed: "此服务需要控制令牌：", use_it: "使用",
    search: "搜索（ / ）", all: "全部", failed: "失败", broken: "违反规则", scenarios: "场景",
    pause: "暂停", resume: "继续", clear: "清空", time: "时间", query: "查询", played: "播放", recording: "录制",
    outcome: "结果", duration: "耗时", rules: "规则", honest: "如实",
    no_scenario: "没有场景", under_way: "进行中", unknown: "未知", live: "实时", connecting: "连接中", gone: "服务已断开，正在重试",
    forbidden: "不允许", counts: "{0} 次调用 · {1} 次失败 · {2} 次违规", counts_of: "{0} / {1} 次调用",
    missed: "有 {0} 次调用来得太快，未能显示在列表中。",
    nothing: "还没有调用。把实时会话指向这里，或者自己问一次：",
    nothing_live: "还没有调用。在这里创建一个实时会话，让它检索记忆：", no_match: "没有匹配的调用。按 Escape 清除搜索。",
    loading: "加载中…", close: "关闭", copy: "复制为", copied: "已复制。", copy_by_hand: "浏览器不允许复制：请手动复制。",
    violations: "违反的规则", request: "请求", reply: "响应", pretty: "格式化", raw: "原文", headers: "头部", bytes: "字节",
    model: "交给模型的内容", no_model: "未知：{0}。", timing: "传输时间", no_body: "（无正文）", cut: "共 {1} 字节，显示前 {0} 字节。",
    size: "{0} 字节", found: "得出答案", delay: "故意延迟", sending: "发送", timing_delivery: "发送方式",
    retry_of: "与失败的调用 {0} 是同一请求", expects: "合格的消费方应表现为 {0}", absent: "（缺失）",
    no_json: "不是 JSON，按文本显示。", connection: "连接 {0}", all_types: "全部类型",
    catalogue: "目录", search_scenarios: "搜索场景", now: "当前播放", clear_all: "全部清除", set: "设置场景",
    next_n: "接下来几次调用", for_s: "持续几秒", when: "仅当请求包含", always: "全部", no_end: "不限",
    add_condition: "＋ 条件", play_it: "播放", plan: "计划", plan_help: "依次播放，然后恢复之前的内容。",
    chaos: "混沌", chaos_help: "按概率播放，写作 场景=概率；相同种子结果相同。", seed: "种子", stop: "停止",
    honest_now: "如实回答，没有设置场景。", choose: "从目录中选择一个。", times_of: "{0} / {1} 次", times_played: "已播放 {0} 次",
    for_more: "还剩 {0} 秒", chaos_rule: "按概率，种子 {0}", planned: "计划", values_help: "值",
    search_memories: "搜索记忆", add: "新增", import: "导入…", export: "导出", new_memory: "新记忆", edit_memory: "编辑记忆", delete: "删除",
    save: "保存", saved: "已保存。", deleted: "已删除。", imported: "已导入 {0} 条记忆。", keywords: "关键词，用逗号分隔；不会发送", of_count: "{0} / {1}",
    try_it: "试一个查询", try_query: "会找到什么……", ranks: "{0} 条记忆参与排序，发送 {1} 条；其他类型的 {2} 条不参与。",
    cut_here: "max_results：以下不发送", ask_then: "然后问数字人：{0}　回答中要体现：{1}",
    over_time: "耗时随时间变化", by_scenario: "按场景", good: "按时给出记忆", plot_none: "还没有调用。", plot_note: "{0} 次调用，对数刻度，单位毫秒。",
    calls_n: "次数", median: "中位数", p95: "p95", max: "最大", theme_light: "浅色", theme_dark: "深色", more: "还有 {0} 条，请用搜索查找。",
    restarted: "服务已重新启动。", gone_call: "服务只保留最近 {1} 次调用，调用 {0} 已不在其中。",
    f_answers: "回答", f_statuses: "状态码", f_bodies: "正文", f_sizes: "大小", f_timing: "时间", f_connection: "连接", f_own: "自定义",
    o_ok: "成功", o_timeout: "超时", o_connection_failed: "连接失败", o_http_error: "HTTP 错误", o_response_too_large: "响应过大", o_invalid_json: "无效 JSON", o_invalid_response: "无效响应",
  },
};
const stored = (name, value) => {
  try {
    if (value === undefined) return localStorage.getItem("memmock-" + name);
    if (value === null) localStorage.removeItem("memmock-" + name); else localStorage.setItem("memmock-" + name, value);
  } catch { /* storage may be off: then nothing is remembered */ }
  return null;
};
let language = stored("language") || (navigator.language.startsWith("zh") ? "zh" : "en");
const t = (key, ...values) => (WORDS[language][key] ?? WORDS.en[key] ?? key).replace(/\{(\d)\}/g, (_, n) => values[n]);
const $ = (id) => document.getElementById(id);
const number = (n) => n.toLocaleString("en-US");
const milliseconds = (ms) => (ms < 10 ? ms.toFixed(1) : number(Math.round(ms))) + " ms";

/** Make an element; children that are text become text, never markup. */
function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}
function svg(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}
let toastTimer = 0;
function toast(text, bad = false) {
  $("toast").textContent = text;
  $("toast").className = bad ? "bad" : "";
  $("toast").hidden = false;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => { $("toast").hidden = true; }, bad ? 7000 : 1800);
}

