// Jobs: what runs and what has ended; one job with its result and what comes next.
import { ask, commandBox, duration, encoded, fill, get, h, legible, number, percent, post, state, t, tried } from "./lib.js";

const name = (job) => t("verb." + job.verb);
const about = (job) => { const of = job.options; return legible(of.source || of.protected || of.release || of.originals || of.gallery || of.out || (of.audits || [])[0] || ""); };
const ended = (job) => !["queued", "running"].includes(job.state);

export function list() {
  const box = h("div");
  const draw = () => box.replaceChildren(...(state.jobs.length ? state.jobs.map((job) => h("article.card.job", h("div.row", h("a", { href: `#/job/${job.id}` }, h("strong", name(job)), " ", h("span.soft", about(job))), h("span.state." + job.state, t("state." + job.state))), bar(job))) : [h("p.soft", t("jobs.none"))]));
  draw();
  return { element: h("div", h("h1", t("jobs.title")), h("p.lead", t("jobs.lead")), box), jobs: draw };
}

function bar(job) {
  if (ended(job)) return null;
  const at = job.progress, share = at && at.total ? at.done / at.total : 0;
  const left = at && at.left !== null ? t("job.left", { time: duration(at.left) }) : "";
  return h("div", h("progress", { max: 1, value: job.state === "running" && at ? share : 0, "aria-label": name(job) }),
    h("p.small.soft", job.state === "queued" ? t("job.waiting") : at ? [t("job.at", { done: number(at.done), total: number(at.total) }), left].filter(Boolean).join(", ") : t("job.beginning")));
}

export function one(id) {
  const head = h("div"), result = h("div"), box = h("div", head, result);
  let drawn = "";
  const draw = tried(async () => {
    const job = state.jobs.find((each) => each.id === id) || (await get(`/api/jobs/${id}`));
    fill(head,
      h("p.row", h("h1", name(job)), h("span.state." + job.state, { role: "status" }, t("state." + job.state))),
      h("p.lead", about(job)), bar(job),
      h("p.row.noprint", !ended(job) && h("button", { type: "button", disabled: job.stopping, onclick: tried(() => post(`/api/jobs/${id}/cancel`)) }, t("do.cancel")),
        ended(job) && job.state !== "done" && job.again && h("button.main", { type: "button", onclick: tried(() => post(`/api/jobs/${id}/resume`)) }, t("job.resume")),
        ended(job) && h("button.quiet", { type: "button", onclick: tried(async () => { await ask("DELETE", `/api/jobs/${id}`); location.hash = "#/jobs"; }) }, t("job.forget"))));
    if (job.verb === "audit" && job.state === "running") { grow(id, result); return; }
    const now = `${job.state}${job.runs}`;
    if (!ended(job) || now === drawn) { if (!ended(job)) result.replaceChildren(commandBox(job.command)); return; }
    drawn = now;
    const whole = await get(`/api/jobs/${id}`);
    result.replaceChildren(...[explain(whole), shown(whole), next(whole), h("details", h("summary", t("job.output")), h("pre", legible([whole.output, whole.errors].filter(Boolean).join("\n") || t("job.silent")))), commandBox(whole.command)].filter(Boolean));
  });
  draw();
  return { element: box, jobs: draw };
}

function explain(job) {
  if (job.state === "failed") return h("div.note.bad", h("p", legible(lastLine(job.errors))));
  if (job.state === "refused" && job.verb === "protect") return h("div.note.warn", h("p", t("job.refused")));
  if (job.state === "refused" && job.verb === "audit") return h("div.note.bad", h("p", t("audit.notThese")));
  return ["cancelled", "interrupted"].includes(job.state) ? h("div.note.warn", h("p", t("job.stopped"))) : null;
}
const lastLine = (text) => (text.trim().split("\n").filter((line) => line.startsWith("Error:")).at(-1) || text.trim().split("\n").at(-1) || "").replace(/^Error: /, "");

function shown(job) {
  if (!job.result) return job.output ? h("div.card", h("pre", legible(job.output))) : null;
  if (job.verb === "audit") return verdicts(job);
  if (job.verb === "ledger-lookup") return table([t("ledger.picture"), t("ledger.original")], Object.entries(job.result));
  if (job.verb === "gallery-search") return h("div", job.result.map((each) => h("div.card", h("h3", legible(each.query)), table([t("gallery.pseudonym"), t("gallery.score"), t("gallery.camera")], each.hits.map((hit) => [hit.record || hit.pseudonym, number(hit.score, 3), hit.camera || ""])))));
  return h("div.card", h("pre", JSON.stringify(job.result, null, 2)));
}
const table = (head, rows) => h("div.card.scroll", h("table", h("thead", h("tr", head.map((each) => h("th", { scope: "col" }, each)))), h("tbody", rows.map((row) => h("tr", row.map((cell) => h("td", legible(String(cell)))))))));

// The verdict level by level, for people, as the audit's own table has it.
function verdicts(job) {
  const found = job.result, out = job.options.out || `${job.options.protected}.audit`;
  const rows = [...found.levels].sort((a, b) => a.level.localeCompare(b.level));
  return h("section.card", h("h2", t("audit.verdict")),
    h("p", t("audit.judged", { pictures: number(found.pictures), people: found.people === null ? "?" : number(found.people), judge: found.judge.name }) + (found.judge["finds in originals"] === null ? "" : " " + t("audit.judgeFinds", { found: percent(found.judge["finds in originals"]) }))),
    found.alarms.map((each) => h("div.note.bad", h("p", h("strong", t("audit.alarm")), ": ", each.text))),
    rows.map((each) => h("div.level", h("strong", each.level), h("span", t("attacker." + each.level)), h("span.state." + tone(each.grade), grade(each.grade)),
      h("p.text", each.attack ? t("audit.best", { attack: each.attack, value: (each["at least"] ? t("figures.atLeast") + " " : "") + percent(each.value), interval: each.low === null ? "" : `(${number(100 * each.low, 1)} – ${number(100 * each.high, 1)} %)`, chance: each.chance === null ? "?" : percent(each.chance) }) : t("audit.noVerdict")))),
    h("p.small.soft", t("audit.proof")),
    h("p.row.noprint", h("a.button.main", { href: `/api/report?place=${encoded(out + "/report.html")}`, target: "_blank", rel: "noopener" }, t("audit.report")), h("button", { type: "button", onclick: () => print() }, t("audit.print"))));
}
const grade = (word) => (state.words["grade." + word] ? t("grade." + word) : word);
const tone = (word) => ({ broken: "failed", "serious leak": "failed", "slight leak": "refused" })[word] || (word === "nothing found" ? "done" : "queued");

const grow = tried(async (id, box) => {
  const found = await get(`/api/jobs/${id}/growth`);
  const levels = ["L0", "L1", "L2", "L3"].map((level) => [level, found.filter((each) => each.level === level && each.applies && each.score)]);
  box.replaceChildren(h("section.card", { "aria-live": "off" }, h("h2", t("audit.growing")), levels.map(([level, made]) => {
    const proven = made.filter((each) => !each.invalid).sort((a, b) => b.score.value - a.score.value)[0];
    return h("div.level", h("strong", level), h("span", t("attacker." + level)), h("span.state", t("audit.made", { count: number(made.length) })), h("p.text", proven ? t("audit.soFar", { attack: proven.attack, metric: proven.score.metric, value: number(proven.score.value, 3) }) : t("audit.nothingYet")));
  }), h("p.small.soft", t("audit.growNote"))));
});

function next(job) {
  if (!["done", "refused"].includes(job.state)) return null;
  const links = [];
  if (job.verb === "protect") {
    links.push(h("a.button.main", { href: `#/review/${encoded(job.options.destination)}` }, t("next.review")));
    links.push(h("a.button", { href: `#/audit?originals=${encoded(job.options.source)}&protected=${encoded(job.options.destination)}` }, t("next.audit")));
  }
  if (job.verb === "compare") links.push(h("a.button.main", { href: `/api/report?place=${encoded(job.options.out + "/compare.html")}`, target: "_blank", rel: "noopener" }, t("audit.report")));
  if (job.verb === "study-make") links.push(h("a.button.main", { href: `/api/report?place=${encoded(job.options.destination + "/study.html")}`, target: "_blank", rel: "noopener" }, t("next.study")));
  return links.length ? h("p.row.noprint", links) : null;
}
