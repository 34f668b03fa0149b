// ---- the frame: pages, language, theme, keys
const PAGES = ["calls", "play", "memories", "times"];
function show(name) {
  for (const each of PAGES) {
    const here = each === name;
    $(each).hidden = !here;
    $("tab-" + each).setAttribute("aria-selected", String(here));
    $("tab-" + each).tabIndex = here ? 0 : -1;
  }
  if (name === "calls") render();
  if (name === "times") plot();
  if (name === "memories" && !memories) loadMemories();
}
/** Move between the buttons of a group with the arrow keys. */
function arrows(group, go) {
  group.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const there = [...group.children].filter((each) => !each.hidden);
    const next = there[(there.indexOf(document.activeElement) + step + there.length) % there.length];
    event.preventDefault();
    next.focus();
    go(next);
  });
}
for (const each of PAGES) $("tab-" + each).addEventListener("click", () => show(each));
arrows(document.querySelector("nav"), (button) => button.click());
function words() {
  document.documentElement.lang = language === "zh" ? "zh-CN" : "en";
  for (const each of document.querySelectorAll("[data-t]")) each.textContent = t(each.dataset.t);
  for (const each of document.querySelectorAll("[data-p]")) each.placeholder = t(each.dataset.p);
  for (const each of document.querySelectorAll("[data-l]")) each.setAttribute("aria-label", t(each.dataset.l));
  for (const each of document.querySelectorAll("[data-p]:not([data-l])")) if (each.id === "search" || each.type === "search") each.setAttribute("aria-label", t(each.dataset.p));
  $("language").textContent = language === "zh" ? "English" : "中文";
  $("language").lang = language === "zh" ? "en" : "zh";
  $("m-keywords-label").textContent = t("keywords");
  setConnected(connected);
  showTheme(); showPause(); showMissed(); showRules(); showCatalogue(); showUse(); showMemories(); showRanking(); showCall(false); plotSoon(); render();
}
$("language").addEventListener("click", () => { language = language === "zh" ? "en" : "zh"; stored("language", language); words(); });
let theme = stored("theme") || "auto";
const isDark = () => theme === "dark" || (theme === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
function showTheme() {
  if (theme === "auto") delete document.documentElement.dataset.theme; else document.documentElement.dataset.theme = theme;
  $("theme").textContent = t(isDark() ? "theme_light" : "theme_dark");
}
$("theme").addEventListener("click", () => { theme = isDark() ? "light" : "dark"; stored("theme", theme); showTheme(); plotSoon(); });
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { showTheme(); plotSoon(); });
/** Whether the focus is on nothing that the arrow keys are for: after loading, or on the button of a page. */
const isNowhere = () => document.activeElement === document.body || document.activeElement?.parentElement?.tagName === "NAV";
const isTyping = () => /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement?.tagName ?? "");
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") {
    if (!$("copybox").hidden) closeCopybox();
    else if (document.activeElement === $("search") && $("search").value) { $("search").value = ""; sought = []; refilter(); }
    else if (!$("calls").hidden && openedNumber) closeDetail();
    else if (!$("memories").hidden && editing !== null) edit(null);
    else if (!$("calls").hidden) list.focus();
    else return;
    event.preventDefault();
  } else if (isTyping()) return;
  else if (event.key === "/") {
    const search = { play: "scenario-search", memories: "memory-search" }[PAGES.find((each) => !$(each).hidden)] ?? "search";
    if (search === "search") show("calls");
    $(search).focus();
    $(search).select();
    event.preventDefault();
  } else if (/^Arrow(Down|Up)$/.test(event.key) && !$("calls").hidden && isNowhere()) {
    list.focus();
    if (indexOf(chosen) < 0) choose(0, false);
    event.preventDefault();
  } else if (event.key === "p" && !$("calls").hidden) togglePause();
  else if (/^[1-4]$/.test(event.key)) {
    const tab = $("tab-" + PAGES[Number(event.key) - 1]);
    if (!tab.hidden) { tab.click(); tab.focus(); }
  }
});
show("calls");
words();
watch();
