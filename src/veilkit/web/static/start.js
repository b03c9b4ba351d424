// Protect: choose pictures, look at them, compare methods on one of them, and start.
import { ask, browser, commandBox, encoded, field, fill, get, h, legible, number, percent, picture, post, say, state, t, tried } from "./lib.js";

const chosen = { source: null, drop: null, picture: null, method: null, settings: {}, shown: null, check: null, values: {} };
const MORE = ["preset", "settings", "model", "on_doubt", "parts", "boxes", "spare", "only_person", "seal_to", "names", "labels", "image_format", "quality", "sound", "size", "pad_files", "key", "workers"];

export function view() {
  const pick = h("div"), look = h("div"), methods = h("div"), start = h("div");
  const steps = [["start.choose", pick], ["start.look", look], ["start.compare", methods], ["start.begin", start]];
  const again = () => { drawLook(); drawMethods(); drawStart(); };

  function drawPick() {
    if (chosen.source) {
      pick.replaceChildren(h("div.card.row", h("div", h("strong", legible(chosen.source.name)), h("div.soft.small", t("browse.holds", { pictures: number(chosen.source.counts.pictures), folders: number(chosen.source.counts.folders) }))),
        h("button", { type: "button", onclick: tried(async () => {
          if (chosen.drop) await ask("DELETE", `/api/drops/${chosen.drop}`);
          Object.assign(chosen, { source: null, drop: null, picture: null, check: null, values: {} });
          drawPick(); again();
        }) }, t(chosen.drop ? "start.wipe" : "start.other"))));
      return;
    }
    const input = h("input.visually-hidden", { type: "file", multiple: true, accept: "image/*,video/*,.dcm", id: "files" });
    const bar = h("div");
    const zone = h("div.drop", h("p", t("start.drop")), h("label.button", { for: "files" }, t("start.files")), input, h("p.small.soft", t("start.dropNote")), bar);
    const take = tried(async (files) => {
      if (!files.length) return;
      const place = chosen.drop || (await post("/api/drops")).place;
      chosen.drop = place;
      const line = h("progress", { max: files.length, value: 0, "aria-label": t("start.uploading") });
      bar.replaceChildren(line);
      const waiting = [...files], refused = [];
      const next = async () => { for (let file; (file = waiting.shift()); line.value += 1) { try { await ask("POST", `/api/drops/${place}?file=${encodeURIComponent(file.name)}`, file); } catch (error) { refused.push(`${file.name}: ${error.message}`); } } };
      await Promise.all([next(), next(), next(), next()]);
      refused.slice(0, 3).forEach((text) => say(text, 10));
      select(await get(`/api/folder?place=${encoded(place)}`));
    });
    input.addEventListener("change", () => take(input.files));
    for (const [name, over] of [["dragover", true], ["dragleave", false], ["drop", false]]) zone.addEventListener(name, (event) => { event.preventDefault(); zone.classList.toggle("over", over); if (name === "drop") take(event.dataTransfer.files); });
    pick.replaceChildren(h("div.card", browser({ choose: select, label: "start.use" })), zone);
  }

  function select(found) {
    if (!found.counts.pictures && !found.counts.folders) { say(t("start.none")); return; }
    chosen.source = found;
    chosen.picture = found.samples[0]?.place || null;
    drawPick(); again();
  }

  function drawLook() {
    if (!chosen.source) { look.replaceChildren(h("p.soft", t("start.first"))); return; }
    const answer = h("div");
    const begin = h("button", { type: "button", onclick: tried(async () => {
      begin.disabled = true;
      chosen.check = await post("/api/jobs", { verb: "check", options: { source: chosen.source.place } });
      wait();
    }) }, t("start.check"));
    const wait = tried(async () => {
      const job = await get(`/api/jobs/${chosen.check.id}`);
      if (job.state === "queued" || job.state === "running") {
        const at = job.progress;
        answer.replaceChildren(h("p.soft", { role: "status" }, t("start.checking")), h("progress", { max: at?.total || 1, value: at?.done || 0, "aria-label": t("start.checking") }));
        setTimeout(wait, 500);
        return;
      }
      begin.disabled = false;
      answer.replaceChildren(job.result ? summary(job.result) : h("div.note.bad", h("p", job.errors || t("state.failed"))));
    });
    look.replaceChildren(h("p", t("start.lookText")), h("p.row", begin), answer);
    if (chosen.check) wait();
  }

  function summary(found) {
    const facts = [[number(found.readable), t("check.readable", { all: number(found.pictures) })]];
    if (found.looked) facts.push([number(found.faces.found), t("check.faces", { looked: number(found.looked) })], [number(found.faces.doubtful), t("check.doubtful")], [number(found.without), t("check.without")]);
    if (found.people) facts.push([number(found.people), t("check.people")]);
    const refused = found.listed || [];
    return h("div.card", { role: "status" }, h("div.facts", facts.map(([value, text]) => h("div", h("strong", value), h("span", text)))),
      found.no_faces && h("p.soft", found.no_faces),
      found.kind && h("p", t("check.kind." + found.kind)),
      refused.length > 0 && h("details", h("summary", t("check.refused", { count: number(refused.length) })), h("ul", refused.slice(0, 200).map(([name, why]) => h("li", legible(name), ": ", why)))));
  }

  function drawMethods() {
    if (!chosen.source) { methods.replaceChildren(h("p.soft", t("start.first"))); return; }
    chosen.shown ??= state.methods.filter((each) => each.first).map((each) => each.name);
    const shots = chosen.source.samples;
    const thumbs = h("div.thumbs", { role: "group", "aria-label": t("start.onWhich") }, shots.map((each) => h("button", { type: "button", "aria-pressed": String(each.place === chosen.picture), "aria-label": legible(each.name), onclick: (event) => {
      chosen.picture = each.place;
      for (const other of thumbs.children) other.setAttribute("aria-pressed", String(other === event.currentTarget));
      made.forEach((each) => each.preview());
    } }, h("img", { src: picture(each.place, 200), alt: "", loading: "lazy" }))));
    const cards = h("div.grid.wide");
    const add = h("select", { "aria-label": t("start.add") }, h("option", { value: "" }, t("start.add")), state.methods.map((each) => h("option", { value: each.name }, t(`method.${each.name}.name`))));
    add.addEventListener("change", () => { if (add.value && !chosen.shown.includes(add.value)) chosen.shown.push(add.value); add.value = ""; drawCards(); });
    const made = new Map();
    const take = (name) => { chosen.method = name; chosen.values = {}; made.forEach((each) => each.mark()); drawStart(); start.scrollIntoView({ block: "start" }); };
    const drawCards = () => {
      for (const name of chosen.shown) {
        if (made.has(name)) continue;
        made.set(name, card(state.methods.find((each) => each.name === name), () => take(name)));
        cards.append(made.get(name).element);
      }
    };
    drawCards();
    methods.replaceChildren(h("p", t("start.compareText")), shots.length ? thumbs : h("p.soft", t("start.noPreview")), cards, h("p", add), figuresNote());
  }

  function drawStart() {
    if (!chosen.source || !chosen.method) { start.replaceChildren(h("p.soft", t("start.chooseMethod"))); return; }
    const method = state.methods.find((each) => each.name === chosen.method);
    const parts = chosen.source.place.split("/"), name = parts.at(-1);
    if (chosen.values.destination === undefined) chosen.values.destination = !chosen.drop && parts.length > 1 ? [...parts.slice(0, -1), `${name}-${chosen.method}`].join("/") : "";
    const fields = { destination: field("protect", "destination", chosen.values) };
    for (const each of MORE) fields[each] = field("protect", each, chosen.values);
    const needed = method.needs === "model" ? ["model"] : method.needs === "expert" ? ["settings"] : [];
    const collect = () => {
      const options = { source: chosen.source.place, method: chosen.method };
      for (const [key, each] of Object.entries(fields)) { const value = each.value(); if (value !== undefined) options[key] = value; }
      const moved = Object.entries(chosen.settings[chosen.method] || {}).map(([key, value]) => `${key}=${value}`);
      const own = options.settings || [];
      if (moved.length || own.length) options.settings = [...moved.filter((each) => !own.some((other) => other.startsWith(each.split("=")[0] + "="))), ...own];
      return options;
    };
    const shown = h("div");
    const refresh = async () => { try { const { command } = await post("/api/command", { verb: "protect", options: collect() }); shown.replaceChildren(...(command ? [commandBox(command)] : [])); } catch { shown.replaceChildren(); } };
    const begin = h("button.main", { type: "button", onclick: tried(async () => {
      const job = await post("/api/jobs", { verb: "protect", options: collect() });
      location.hash = `#/job/${job.id}`;
    }) }, t("start.protect"));
    fill(start, h("div.card", h("h3", t(`method.${chosen.method}.name`)),
      method.undone && h("div.note.bad", h("p", t("start.undone", { attack: method.undone }))),
      method.needs && h("div.note.warn", h("p", t("start.needs." + method.needs))),
      fields.destination.element, needed.map((each) => fields[each].element),
      h("details", h("summary", t("start.more")), MORE.filter((each) => !needed.includes(each)).map((each) => fields[each].element)),
      h("p.small.soft", t("start.keyNote")), h("p.row", begin), shown));
    start.oninput = refresh;
    refresh();
  }

  drawPick(); again();
  return h("div", h("h1", t("start.title")), h("p.lead", t("start.lead")),
    steps.map(([key, part], index) => h("section.step", { "aria-labelledby": key }, h("div.number", { "aria-hidden": "true" }, index + 1), h("div", h("h2", { id: key }, t(key)), part))));
}

function figuresNote() {
  const about = state.figures;
  return h("p.small.soft", t("figures.note", { source: about.source, scale: about.scale, date: about.date }));
}

function card(method, take) {
  const settings = (chosen.settings[method.name] ??= {});
  const stage = h("div", h("div.stage", h("p.soft.small", " ")));
  const note = h("p.small.soft", { "aria-live": "polite" });
  let asked = 0;
  const preview = async () => {
    if (!chosen.picture || !method.preview) { stage.replaceChildren(); note.textContent = t(method.preview ? "start.noPreview" : "preview.none"); return; }
    const mine = ++asked;
    note.textContent = t("preview.waiting");
    try {
      const made = await post("/api/preview", { picture: chosen.picture, method: method.name, settings });
      if (mine !== asked) return;
      stage.replaceChildren(compare(picture(chosen.picture, 900), made.after, made.width, made.height, t("preview.slide", { name: t(`method.${method.name}.name`) })));
      const counts = made.counts.found === undefined ? "" : t("preview.faces", { found: number(made.counts.found), doubtful: number(made.counts.doubtful || 0) });
      note.textContent = [counts, made.shrunk ? t("preview.shrunk") : "", t("preview.seconds", { seconds: number(made.seconds, 1) })].filter(Boolean).join(" ");
    } catch (error) { if (mine === asked) { stage.replaceChildren(); note.textContent = error.message; } }
  };
  let timer = 0;
  const sliders = method.sliders.map((each) => {
    const out = h("output", number(settings[each.name] ?? each.default, 2));
    const input = h("input", { type: "range", min: each.min, max: each.max, step: each.step, value: settings[each.name] ?? each.default, oninput: () => {
      settings[each.name] = Number(input.value); out.textContent = number(settings[each.name], 2);
      if (settings[each.name] === each.default) delete settings[each.name];
      clearTimeout(timer); timer = setTimeout(preview, 350);
    } });
    return h("label.field", h("span", t(`setting.${method.name}.${each.name}`), ": ", out), input);
  });
  preview();
  const button = h("button", { type: "button", onclick: take });
  const mark = () => {
    const mine = chosen.method === method.name;
    element.classList.toggle("chosen", mine); button.classList.toggle("main", !mine);
    button.setAttribute("aria-pressed", String(mine)); button.textContent = t(mine ? "method.chosen" : "method.choose");
  };
  const figures = state.figures.methods[method.name];
  const element = h("article.card.method", { "aria-label": t(`method.${method.name}.name`) },
    h("header", h("h3", t(`method.${method.name}.name`)), method.undone && h("span.state.failed", t("method.unsafe"))),
    stage, note, sliders,
    h("p", t(`method.${method.name}.what`)),
    h("dl", h("dt", t("method.keeps")), h("dd", t(`method.${method.name}.keeps`), " ", h("span.soft", keeps(figures))),
      h("dt", t("method.gives")), h("dd", t(`method.${method.name}.gives`), " ", h("span.soft", gives(figures)))),
    h("p.actions.row", button));
  mark();
  return { element, mark, preview };
}

function keeps(found) {
  if (!found) return t("figures.none");
  const kept = found.kept;
  if (kept.found !== undefined) return t("figures.faces", { found: percent(kept.found) }) + (kept.moved === undefined ? "" : " " + t("figures.moved", { moved: percent(kept.moved) }));
  if (kept["rank-1"] === undefined) return t("figures.none");
  return t("figures.search", { found: percent(kept["rank-1"]) }) + (kept.originals === undefined ? "" : " " + t("figures.originals", { found: percent(kept.originals) }));
}

function gives(found) {
  if (!found) return t("figures.none");
  const doubt = found["some failed"] ? " " + t("figures.failed") : "";
  if (!found.leak) return t("figures.nothing") + doubt;
  const value = (found.leak["at least"] ? t("figures.atLeast") + " " : "") + percent(found.leak.value);
  return t(found.leak.metric === "AUC" ? "figures.auc" : "figures.leak", { value, who: t("attacker." + found.leak.level) }) + doubt;
}

// Before and after, with a slider between them that also keys move.
function compare(before, after, width, height, label) {
  const over = h("div.after", h("img", { src: after, alt: t("preview.after") })), bar = h("div.bar");
  const move = (share) => { over.style.clipPath = `inset(0 0 0 ${share}%)`; bar.style.left = `${share}%`; };
  const input = h("input", { type: "range", min: 0, max: 100, value: 35, "aria-label": label, oninput: () => move(Number(input.value)) });
  move(35);
  const box = h("div.compare", h("img", { src: before, alt: t("preview.before") }), over, bar, input);
  box.style.aspectRatio = `${width} / ${height}`;
  return box;
}

