// ---- the server
let token = "";
try { token = sessionStorage.getItem("memmock-token") || ""; } catch { /* as above */ }
let hello = null;
function headersFor(body) {
  return { ...(body === undefined ? {} : { "Content-Type": "application/json" }), ...(token ? { Authorization: "Bearer " + token } : {}) };
}
async function api(method, name, body) {
  let answer;
  try {
    answer = await fetch(name, { method, headers: headersFor(body), body: body === undefined ? undefined : JSON.stringify(body) });
  } catch { throw new Error(t("gone")); }
  const value = await answer.json().catch(() => ({}));
  if (answer.ok) return value;
  if (answer.status === 401) askForToken();
  const error = new Error(value.error ? value.error.message : `${answer.status}`);
  error.status = answer.status;
  throw error;
}
/** Do something that may fail, and tell the user when it does. */
async function attempt(action) {
  try { return await action(); } catch (error) { toast(error.message, true); return undefined; }
}
function askForToken() { $("bar").hidden = false; $("token").focus(); }
$("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  token = $("token").value.trim();
  try { sessionStorage.setItem("memmock-token", token); } catch { /* as above */ }
  $("token").value = "";
  $("bar").hidden = true;
  wake();
});
let connected = "connecting";
function setConnected(what) {
  connected = what;
  $("dot").className = what === "live" ? "on" : what === "connecting" ? "" : "off";
  $("state").textContent = t(what);
}
let wake = () => {}, stream = null;
async function watch() {
  for (let wait = 500; ; wait = Math.min(wait * 2, 5000)) {
    try {
      stream = new AbortController();
      const answer = await fetch("events?since=" + last, { headers: headersFor(), signal: stream.signal });
      if (answer.ok) {
        wait = 500;
        setConnected("live");
        await readEvents(answer.body.getReader());
      } else {
        setConnected("forbidden");
        const value = await answer.json().catch(() => ({}));
        if (answer.status === 401) askForToken(); else if (value.error) toast(value.error.message, true);
        if (answer.status === 401) wait = 1e9;
      }
    } catch { /* the server is gone */ }
    if (connected !== "forbidden") setConnected("gone");
    await new Promise((resolve) => { wake = resolve; if (wait < 1e9) setTimeout(resolve, wait); });
    if (wait >= 1e9) wait = 250;
  }
}
async function readEvents(reader) {
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += decoder.decode(value, { stream: true });
    let end;
    while ((end = text.indexOf("\n\n")) >= 0) {
      const lines = text.slice(0, end).split("\n");
      text = text.slice(end + 2);
      const name = lines.find((line) => line.startsWith("event: "));
      const data = lines.find((line) => line.startsWith("data: "));
      if (name && data) take(name.slice(7), JSON.parse(data.slice(6)));
    }
  }
}
function take(name, value) {
  if (name === "hello") greet(value);
  else if (name === "calls") paused ? hold(value) : add(value);
  else if (name === "missed") { missed += value.missed; showMissed(); }
  else if (name === "state") { state = value; stateChanged(); }
}
function greet(value) {
  if (hello && hello.server !== value.server) {
    forget();
    last = 0;
    toast(t("restarted"));
    hello = value;
    setTimeout(() => location.reload(), 300);  // it may be another version, with another page
    return;
  }
  if (!hello && cleared.server !== value.server && last) {  // what was cleared were the calls of another server
    last = 0;
    stream.abort();
    return;
  }
  hello = value;
  $("endpoint").textContent = value.endpoint;
  $("endpoint").title = value.endpoint;
  $("tab-play").hidden = $("tab-memories").hidden = !value.mock;
  $("played-head").dataset.t = value.mock || value.kind === "live" ? "played" : "recording";
  document.title = `memmock ${value.kind}`;
  makeDemo();
  words();
  if (value.mock && !catalogue.length) loadCatalogue();
}

