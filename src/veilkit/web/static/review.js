// Review: pictures before and after, doubtful ones first; decisions by keys, applied to the release in place.
import { browser, encoded, failed, fill, get, h, legible, number, picture, post, say, state, t, tried } from "./lib.js";

export function pick() {
  return { element: h("div", h("h1", t("review.title")), h("p.lead", t("review.lead")), h("div.card", browser({ choose: (found) => (found.kind === "release" ? (location.hash = `#/review/${encoded(found.place)}`) : say(t("review.noRelease"))), label: "review.open" }))) };
}

export function view(release) {
  const box = h("div", h("p.soft", { role: "status" }, t("review.loading")));
  let found = null, shown = [], place = 0, chosen = null, job = null, only = "open";
  const decisions = new Map(); // path -> { actions: {}, added: [], changed }

  const load = async () => {
    try { found = await get(`/api/review?release=${encoded(release)}`); } catch (error) { box.replaceChildren(h("h1", t("review.title")), h("div.note.bad", h("p", error.message))); return; }
    decisions.clear();
    select(); frame();
  };
  const current = () => shown[place];
  const decided = (each) => { if (!decisions.has(each.path)) decisions.set(each.path, { actions: {}, added: [], accepted: each.reviewed }); return decisions.get(each.path); };
  const boxesOf = (each) => [
    ...each.faces.map((face, index) => ({ box: face.box, kind: decided(each).actions[index] || face.asked || (face.doubtful ? "doubtful" : "found"), index, note: face.outcome })),
    ...decided(each).added.map((drawn, added) => ({ box: drawn, kind: "hide", added, note: t("review.added") })),
  ];
  const changed = (each) => decisions.has(each.path) && (decided(each).added.length > 0 || Object.keys(decided(each).actions).length > 0);
  const open = (each) => !decided(each).accepted;
  function select() {
    const was = current();
    shown = found.pictures.filter((each) => only === "all" || (only === "doubtful" ? each.doubts > 0 : open(each)));
    place = Math.max(0, shown.findIndex((each) => each.path === was?.path)); chosen = null;
  }

  const name = h("h2", { tabIndex: -1 }), notes = h("p.soft"), status = h("p.soft", { role: "status" });
  const before = h("img", { alt: t("preview.before") }), after = h("img", { alt: t("preview.after") });
  const layer = h("div.boxes"), stage = h("div.stage.draw", before, layer), list = h("ul.boxlist", { "aria-label": t("review.boxes") });
  const apply = h("button.main", { type: "button", onclick: () => send() }, t("review.apply"), " ", h("kbd", "S"));
  const pair = h("div", name, notes, h("div.pair", h("figure", h("figcaption", t("review.before")), stage), h("figure", h("figcaption", t("review.after")), h("div.stage", after))));
  const tools = h("p.row", h("button", { type: "button", onclick: () => accept() }, t("review.accept"), " ", h("kbd", "A")), h("button", { type: "button", onclick: () => add(middle()) }, t("review.add"), " ", h("kbd", "N")));

  function frame() {
    const filter = h("select", { "aria-label": t("review.show") }, ["open", "doubtful", "all"].map((each) => h("option", { value: each, selected: each === only }, t("review.show." + each))));
    filter.addEventListener("change", () => { only = filter.value; select(); draw(); });
    fill(box, h("h1", t("review.title")), h("p.lead", legible(release.split("/").at(-1)), " · ", t(`method.${found.method}.name`)),
      !found.can_apply && h("div.note.warn", h("p", t("review.notApplied"))),
      found.pictures.length ? null : h("div.note", h("p", t("review.nothing"))),
      h("div.row", filter, h("button", { type: "button", onclick: () => step(-1) }, t("review.previous"), " ", h("kbd", "K")), h("button", { type: "button", onclick: () => step(1) }, t("review.next"), " ", h("kbd", "J")), apply),
      status, pair, tools, list,
      h("details", h("summary", t("review.keys")), h("p", t("review.keysText"))));
    draw();
  }

  function draw(focus) {
    const each = current(), left = found.pictures.filter(open).length;
    status.textContent = t("review.status", { left: number(left), all: number(found.pictures.length) });
    apply.disabled = !found.pictures.some(changed) || !found.can_apply;
    for (const part of [pair, tools, list]) part.hidden = !each;
    if (!each) { layer.replaceChildren(); return; }
    name.textContent = legible(each.path);
    notes.textContent = each.notes.join("; ");
    for (const [image, side] of [[before, each.before], [after, each.after]]) {
      const source = side ? picture(side, 1400) + `&made=${each.made}` : "";
      if (image.dataset.source !== source) { image.dataset.source = source; image.src = source; }
      image.parentElement.style.aspectRatio = `${each.width} / ${each.height}`;
    }
    layer.replaceChildren(); list.replaceChildren();
    boxesOf(each).forEach((one, index) => {
      const [x, y, right, bottom] = one.box, label = t("review.box", { number: index + 1, kind: t("review.kind." + one.kind), note: one.note });
      const element = h("button.box." + one.kind, { type: "button", "aria-label": label, onfocus: () => { chosen = one; } });
      Object.assign(element.style, { left: `${(100 * x) / each.width}%`, top: `${(100 * y) / each.height}%`, width: `${(100 * (right - x)) / each.width}%`, height: `${(100 * (bottom - y)) / each.height}%` });
      layer.append(element);
      const actions = one.added !== undefined ? [["remove", null]] : [["hide", "hide"], ["spare", "spare"], ["found", null]];
      list.append(h("li", h("span", label), actions.map(([word, action]) => h("button", { type: "button", "aria-pressed": one.added === undefined ? String((action ?? "found") === (["hide", "spare"].includes(one.kind) ? one.kind : "found")) : undefined, "aria-label": `${t("review.do." + word)}: ${index + 1}`, onclick: () => act(one, action) }, t("review.do." + word)))));
      if (focus && focus.added === one.added && focus.index === one.index) element.focus({ preventScroll: true });
    });
  }

  function act(one, action) {
    const each = current(), mine = decided(each);
    if (one.added !== undefined) { if (action === null) mine.added.splice(one.added, 1); }
    else if (action === null) { if (each.faces[one.index].asked) mine.actions[one.index] = "protect"; else delete mine.actions[one.index]; }
    else mine.actions[one.index] = action;
    draw(one);
  }
  function add(drawn) { const mine = decided(current()); mine.added.push(drawn.map(Math.round)); draw({ added: mine.added.length - 1 }); }
  function step(by) { if (shown.length) { place = (place + by + shown.length) % shown.length; chosen = null; draw(); name.focus(); } }
  const accept = tried(async () => {
    const each = current();
    if (!each) return;
    if (!changed(each)) await post("/api/review", { release, decisions: [{ path: each.path, made: each.made }] });
    decided(each).accepted = true;
    if (only === "open") { shown.splice(place, 1); place = shown.length ? place % shown.length : 0; draw(); name.focus(); } else step(1);
  });
  const send = async () => {
    const sent = found.pictures.filter(changed).map((each) => ({ path: each.path, made: each.made, boxes: boxesOf(each).filter((one) => !["found", "doubtful"].includes(one.kind)).map((one) => ({ box: one.box, action: one.kind })) }));
    try {
      const answer = await post("/api/review", { release, decisions: sent });
      job = answer.job;
      apply.disabled = true;
      if (job) say(t("review.applying"));
    } catch (error) { failed(error); }
  };
  function move(key, resize) {
    const each = current(), mine = decided(each);
    if (!chosen || chosen.added === undefined) return false;
    const size = Math.max(1, Math.round(Math.min(each.width, each.height) / 100));
    const [dx, dy] = { ArrowLeft: [-size, 0], ArrowRight: [size, 0], ArrowUp: [0, -size], ArrowDown: [0, size] }[key];
    let [x, y, right, bottom] = mine.added[chosen.added];
    if (!resize) { x += dx; y += dy; }
    right += dx; bottom += dy;
    if (right - x >= 4 && bottom - y >= 4) { mine.added[chosen.added] = [x, y, right, bottom]; draw(chosen); }
    return true;
  }
  const middle = () => { const { width, height } = current(), side = Math.min(width, height) / 8; return [width / 2 - side, height / 2 - side, width / 2 + side, height / 2 + side]; };
  let from = null;
  const inside = (event) => { const edge = before.getBoundingClientRect(), each = current(); return [((event.clientX - edge.left) / edge.width) * each.width, ((event.clientY - edge.top) / edge.height) * each.height]; };
  stage.addEventListener("pointerdown", (event) => { if (current() && !event.target.classList.contains("box")) { from = inside(event); event.preventDefault(); } });
  const up = (event) => {
    if (!from || !current()) return;
    const [x, y] = inside(event), [a, b] = from;
    from = null;
    if (Math.abs(x - a) > 3 && Math.abs(y - b) > 3) add([Math.min(a, x), Math.min(b, y), Math.max(a, x), Math.max(b, y)]);
  };
  addEventListener("pointerup", up);
  const keys = (event) => {
    if (!found || event.ctrlKey || event.metaKey || event.altKey || ["SELECT", "INPUT", "TEXTAREA"].includes(event.target.tagName)) return;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (key === "j") step(1);
    else if (key === "k") step(-1);
    else if (key === "a") accept();
    else if (key === "s" && !apply.disabled) send();
    else if (key === "n" && current()) add(middle());
    else if (key === "h" && chosen && chosen.added === undefined) act(chosen, "hide");
    else if (key === "l" && chosen && chosen.added === undefined) act(chosen, "spare");
    else if (key === "x" && chosen) act(chosen, null);
    else if (!key.startsWith("Arrow") || !current() || !move(key, event.shiftKey)) return;
    event.preventDefault();
  };
  addEventListener("keydown", keys);
  load();
  return {
    element: box,
    jobs: () => {
      const mine = job && state.jobs.find((each) => each.id === job);
      if (mine && ["done", "refused", "failed", "cancelled"].includes(mine.state)) { job = null; say(t(mine.state === "failed" ? "review.failed" : "review.applied")); load(); }
    },
    close: () => { removeEventListener("keydown", keys); removeEventListener("pointerup", up); },
  };
}
