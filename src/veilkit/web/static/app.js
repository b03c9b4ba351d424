// The frame: words, addresses, and the stream of jobs.
import * as jobs from "./jobs.js";
import * as review from "./review.js";
import * as start from "./start.js";
import * as tools from "./tools.js";
import { get, h, state, t } from "./lib.js";

const at = (id) => document.getElementById(id);
let current = {};

const load = async (file) => (await fetch(`/static/${file}`, { credentials: "same-origin" })).json();

async function speak(language) {
  const english = await load("en.json");
  state.words = language === "en" ? english : { ...english, ...(await load(`${language}.json`)) };
  state.language = language;
  document.documentElement.lang = language;
  try { localStorage.setItem("veilkit-language", language); } catch { /* for this visit only */ }
}

function remembered() {
  try { const kept = localStorage.getItem("veilkit-language"); if (kept) return kept; } catch { /* nothing kept */ }
  return navigator.language.toLowerCase().startsWith("de") ? "de" : "en";
}

function frame() {
  const active = state.jobs.filter((job) => ["queued", "running"].includes(job.state)).length;
  const here = location.hash.split(/[/?]/)[1] || "";
  const links = [["", "nav.protect"], ["review", "nav.review"], ["audit", "nav.audit"], ["jobs", "nav.jobs"], ["more", "nav.more"]];
  const place = here === "job" ? "jobs" : tools.has(here) && here !== "audit" ? "more" : here;
  at("nav").setAttribute("aria-label", t("nav.label"));
  at("nav").replaceChildren(...links.map(([to, key]) => h("a", { href: `#/${to}`, "aria-current": to === place ? "page" : undefined }, t(key), to === "jobs" && active > 0 && h("span.count", active))));
  at("skip").textContent = t("nav.skip");
  at("language").textContent = state.language === "en" ? "Deutsch" : "English";
  at("language").lang = state.language === "en" ? "de" : "en";
  at("foot").textContent = t("foot", { version: state.about.veilkit });
}

function route() {
  current.close?.();
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...rest] = path.split("/");
  const values = Object.fromEntries(new URLSearchParams(query || ""));
  const place = decodeURIComponent(rest.join("/"));
  if (name === "jobs") current = jobs.list();
  else if (name === "job") current = jobs.one(place);
  else if (name === "review") current = place ? review.view(place) : review.pick();
  else if (name === "more") current = tools.all();
  else if (tools.has(name)) current = tools.one(name, values);
  else current = { element: start.view() };
  at("main").replaceChildren(current.element);
  frame();
  document.title = `${current.element.querySelector("h1")?.textContent || "veilkit"} – veilkit`;
  scrollTo(0, 0);
}

function listen() {
  const events = new EventSource("/api/events");
  events.onmessage = (event) => { state.jobs = JSON.parse(event.data); frame(); current.jobs?.(); };
}

at("language").addEventListener("click", async () => { await speak(state.language === "en" ? "de" : "en"); route(); });
at("skip").addEventListener("click", (event) => { event.preventDefault(); at("main").focus(); });
for (const name of ["dragover", "drop"]) addEventListener(name, (event) => event.preventDefault());

const [about, figures, methods] = await Promise.all([get("/api/about"), load("figures.json"), load("methods.json"), speak(remembered())]);
Object.assign(state, { about, figures, methods });
addEventListener("hashchange", () => { route(); at("main").focus({ preventScroll: true }); });
route();
listen();
