// Forms for the other commands: audit, compare, recover, ledger, withdraw, gallery, study.
import { commandBox, field, h, post, t, tried } from "./lib.js";

// Each tool: its verbs, with the fields that come first and those that are rarely needed.
const TOOLS = {
  audit: [["audit", ["originals", "protected", "budget"], ["kind", "labels", "expert", "judge", "key", "model", "boxes", "videos", "show_originals", "learn", "workers", "thresholds", "out"]]],
  compare: [["compare", ["audits", "out"], ["thresholds"]]],
  recover: [["recover", ["protected", "identity", "destination", "only"], ["sealed", "key", "log", "model"]], ["keygen", ["out"], []]],
  ledger: [["ledger-lookup", ["release", "names"], ["key"]], ["ledger-show", ["release"], ["key"]], ["ledger-export", ["release", "out"], ["key"]]],
  withdraw: [["withdraw", ["release", "only"], ["gallery", "gallery_key", "sealed", "key"]]],
  gallery: [["gallery-search", ["gallery", "query", "key"], ["top"]], ["gallery-create", ["gallery", "expert", "mechanism", "epsilon", "per"], ["budget_epsilon", "delta", "dimension"]], ["gallery-add", ["gallery", "source", "labels"], ["times", "key"]], ["gallery-budget", ["gallery"], ["key"]]],
  study: [["study-make", ["originals", "protected", "destination", "questions"], ["kind", "checks", "participants", "labels", "key"]], ["study-score", ["answers", "key"], []]],
};

export function all() {
  return { element: h("div", h("h1", t("more.title")), h("p.lead", t("more.lead")), h("div.grid", Object.keys(TOOLS).map((name) => h("a.card.tile", { href: `#/${name}` }, h("h2", t(`tool.${name}`)), h("p", t(`tool.${name}.text`)))))) };
}

export const has = (name) => name in TOOLS;

export function one(name, values) {
  return { element: h("div", h("h1", t(`tool.${name}`)), h("p.lead", t(`tool.${name}.text`)), TOOLS[name].map(([verb, first, more]) => form(verb, first, more, values, TOOLS[name].length > 1))) };
}

function form(verb, first, more, values, titled) {
  const fields = Object.fromEntries([...first, ...more].map((each) => [each, field(verb, each, values)]));
  const collect = () => Object.fromEntries(Object.entries(fields).map(([key, each]) => [key, each.value()]).filter(([, value]) => value !== undefined));
  const shown = h("div");
  const refresh = async () => { try { const { command } = await post("/api/command", { verb, options: collect() }); shown.replaceChildren(...(command ? [commandBox(command)] : [])); } catch { shown.replaceChildren(); } };
  const box = h("form.card", { "aria-label": t("verb." + verb), oninput: refresh, onsubmit: (event) => { event.preventDefault(); begin(); } },
    titled && h("h2", t("verb." + verb)), h("p.soft", t(`verb.${verb}.text`)),
    first.map((each) => fields[each].element),
    more.length > 0 && h("details", h("summary", t("start.more")), more.map((each) => fields[each].element)),
    h("p.row", h("button.main", { type: "submit" }, t("verb." + verb + ".do"))), shown);
  const begin = tried(async () => { const options = collect(); if (verb === "audit" && !options.budget && !options.learn) options.budget = "3m"; const job = await post("/api/jobs", { verb, options }); location.hash = `#/job/${job.id}`; });
  refresh();
  return box;
}
