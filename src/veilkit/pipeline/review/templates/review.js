"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const at = (id) => document.getElementById(id);
  const KEY = "veilkit-review-" + data.release;
  const words = { found: "found", doubtful: "doubtful", hide: "to be hidden", spare: "to be left as it is", protect: "to be protected" };
  let saved = {};
  try { saved = JSON.parse(localStorage.getItem(KEY)) || {}; } catch { saved = {}; }
  // What was decided of a picture: reviewed or not, an action for each box that was found, and boxes that were added.
  const decided = (picture) => (saved[`${picture.made} ${picture.path}`] ??= { reviewed: false, actions: {}, added: [] });
  const keep = () => { try { localStorage.setItem(KEY, JSON.stringify(saved)); } catch { /* kept for this visit only */ } };
  let shown = [], place = 0, chosen = null, unsaved = false;

  const current = () => shown[place];
  const boxesOf = (picture) => {
    const state = decided(picture);
    return [
      ...picture.faces.map((face, index) => ({ box: face.box, kind: state.actions[index] || face.asked || (face.doubtful ? "doubtful" : "found"), index, note: face.outcome })),
      ...state.added.map((box, index) => ({ box, kind: "hide", added: index, note: "added here" })),
    ];
  };

  function select() {
    const wanted = at("filter").value, was = current();
    shown = data.pictures.filter((each) => wanted === "all" || (wanted === "doubtful" ? each.doubts > 0 : !decided(each).reviewed));
    place = Math.max(0, shown.indexOf(was));
    show();
  }

  function show() {
    const picture = current(), left = data.pictures.filter((each) => !decided(each).reviewed).length;
    at("status").textContent = `${left} of ${data.pictures.length} not reviewed yet` + (picture ? `; picture ${place + 1} of ${shown.length}` : "");
    for (const id of ["before", "after", "accept", "add"]) at(id).hidden = !picture;
    at("name").textContent = picture ? picture.path : "Nothing is left to review here";
    at("notes").textContent = picture ? picture.notes.join("; ") : "";
    if (picture) {
      for (const stage of document.querySelectorAll(".stage")) stage.style.maxWidth = `${(75 * picture.width) / picture.height}vh`;
      at("before").src = picture.before; at("after").src = picture.after;
    }
    draw();
  }

  function draw(focus) {
    const picture = current();
    at("boxes").replaceChildren(); at("list").replaceChildren();
    if (!picture) return;
    boxesOf(picture).forEach((each, number) => {
      const [left, top, right, bottom] = each.box, label = `Box ${number + 1}: ${words[each.kind]} (${each.note})`;
      const element = document.createElement("button");
      element.type = "button"; element.className = "box " + each.kind; element.setAttribute("aria-label", label);
      element.style.left = (100 * left) / picture.width + "%"; element.style.top = (100 * top) / picture.height + "%";
      element.style.width = (100 * (right - left)) / picture.width + "%"; element.style.height = (100 * (bottom - top)) / picture.height + "%";
      element.addEventListener("focus", () => { chosen = each; });
      at("boxes").append(element);
      const line = document.createElement("li");
      line.append(label);
      for (const [name, action] of each.added === undefined ? [["Hide", "hide"], ["Leave as it is", "spare"], ["As found", null]] : [["Remove", null]]) {
        const button = document.createElement("button");
        button.type = "button"; button.textContent = name; button.setAttribute("aria-label", `${name}: box ${number + 1}`);
        button.addEventListener("click", () => act(each, action));
        line.append(button);
      }
      at("list").append(line);
      if (focus && focus.added === each.added && focus.index === each.index) element.focus({ preventScroll: true });
    });
  }

  function act(each, action) {
    const state = decided(current());
    if (each.added !== undefined) { if (action === null) state.added.splice(each.added, 1); }
    else if (action === null) delete state.actions[each.index];
    else state.actions[each.index] = action;
    changed(); draw(each);
  }

  const changed = () => { unsaved = true; keep(); };

  function add(box) {
    const state = decided(current());
    state.added.push(box.map((value) => Math.round(value)));
    changed(); draw({ added: state.added.length - 1 });
  }

  function move(key, resize) {
    const picture = current(), state = decided(picture);
    if (!chosen || chosen.added === undefined) return false;
    const step = Math.max(1, Math.round(Math.min(picture.width, picture.height) / 100));
    const [x, y] = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step] }[key];
    let [left, top, right, bottom] = state.added[chosen.added];
    if (!resize) { left += x; top += y; }
    right += x; bottom += y;
    if (right - left < 4 || bottom - top < 4) return true;
    state.added[chosen.added] = [left, top, right, bottom];
    changed(); draw(chosen);
    return true;
  }

  function step(by) { if (shown.length) { place = (place + by + shown.length) % shown.length; chosen = null; show(); at("name").focus(); } }

  function accept() {
    const picture = current();
    if (!picture) return;
    decided(picture).reviewed = true; keep();
    if (at("filter").value === "open") { shown.splice(place, 1); place = shown.length ? place % shown.length : 0; show(); at("name").focus(); }
    else step(1);
  }

  function save() {
    const marked = (text) => (/^[\t\r\n']|^\s*[=+\-@＝＋－＠]/.test(text) ? "'" + text : text); // no formula for a spreadsheet
    const cell = (text) => (/[",\n\r]/.test(text) ? '"' + marked(text).replaceAll('"', '""') + '"' : marked(text));
    const lines = ["path,x,y,w,h,action"];
    for (const picture of data.pictures) {
      for (const each of boxesOf(picture)) {
        if (each.kind === "found" || each.kind === "doubtful") continue;
        const [left, top, right, bottom] = each.box;
        lines.push([cell(picture.path), left, top, right - left, bottom - top, each.kind].join(","));
      }
    }
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([lines.join("\r\n") + "\r\n"], { type: "text/csv" }));
    link.download = "boxes.csv"; link.click(); URL.revokeObjectURL(link.href);
    unsaved = false;
    at("status").textContent = `${lines.length - 1} boxes saved as boxes.csv: run the same command again with --boxes boxes.csv`;
  }

  let start = null;
  const inPicture = (event) => {
    const frame = at("before").getBoundingClientRect(), picture = current();
    return [((event.clientX - frame.left) / frame.width) * picture.width, ((event.clientY - frame.top) / frame.height) * picture.height];
  };
  at("stage").addEventListener("pointerdown", (event) => { if (current() && !event.target.classList.contains("box")) { start = inPicture(event); event.preventDefault(); } });
  addEventListener("pointerup", (event) => {
    if (!start) return;
    const [x, y] = inPicture(event), [a, b] = start;
    start = null;
    if (Math.abs(x - a) > 3 && Math.abs(y - b) > 3) add([Math.min(a, x), Math.min(b, y), Math.max(a, x), Math.max(b, y)]);
  });
  const middle = () => { const { width, height } = current(), side = Math.min(width, height) / 8; return [width / 2 - side, height / 2 - side, width / 2 + side, height / 2 + side]; };
  at("filter").addEventListener("change", select);
  at("previous").addEventListener("click", () => step(-1));
  at("next").addEventListener("click", () => step(1));
  at("accept").addEventListener("click", accept);
  at("add").addEventListener("click", () => add(middle()));
  at("save").addEventListener("click", save);
  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === "SELECT") return;
    const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
    if (key === "j") step(1);
    else if (key === "k") step(-1);
    else if (key === "a") accept();
    else if (key === "s") save();
    else if (key === "n" && current()) add(middle());
    else if (key === "h" && chosen && chosen.added === undefined) act(chosen, "hide");
    else if (key === "l" && chosen && chosen.added === undefined) act(chosen, "spare");
    else if (key === "x" && chosen) act(chosen, null);
    else if (!key.startsWith("Arrow") || !move(key, event.shiftKey)) return;
    event.preventDefault();
  });
  addEventListener("beforeunload", (event) => { if (unsaved) event.preventDefault(); });
  select();
  if (!shown.length) { at("filter").value = "all"; select(); }
})();
