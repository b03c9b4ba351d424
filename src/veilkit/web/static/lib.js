// What all views share: words, elements, questions to the server, and choosing folders.
export const state = { about: null, figures: null, jobs: [], words: {}, language: "en", listeners: new Set() };
const form = document.querySelector('meta[name="form"]').content;

export function t(key, values = {}) {
  const text = state.words[key] ?? key;
  return text.replace(/\{(\w+)\}/g, (_, name) => values[name] ?? "");
}
export const known = (key) => key in state.words;
export const number = (value, digits = 0) => value.toLocaleString(state.language, { maximumFractionDigits: digits });
export const percent = (share) => { const value = 100 * share; return number(value, value > 0 && (value < 1 || (value > 99 && value < 100)) ? 1 : 0) + " %"; };

// h("p.soft", { onclick }, "text", child): an element; text is never taken for HTML.
export function h(what, ...rest) {
  const [name, ...classes] = what.split(".");
  const element = document.createElement(name || "div");
  if (classes.length) element.className = classes.join(" ");
  for (const each of rest.flat(9)) {
    if (each === null || each === undefined || each === false) continue;
    if (typeof each === "object" && !(each instanceof Node)) {
      for (const [key, value] of Object.entries(each)) {
        if (value === undefined || value === null || value === false) continue;
        if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
        else if (key in element && !key.startsWith("aria") && key !== "list" && key !== "for") element[key] = value;
        else element.setAttribute(key, value === true ? "" : value);
      }
    } else element.append(each instanceof Node ? each : String(each));
  }
  return element;
}

// What an element holds from now on; what is nothing is left out.
export const fill = (element, ...parts) => element.replaceChildren(...parts.flat(9).filter((each) => each !== null && each !== undefined && each !== false));

// A place in an address: names on disk may hold bytes that are no text, which come as lone surrogates.
export const encoded = (place) => Array.from(place).map((sign) => {
  const code = sign.codePointAt(0);
  return code >= 0xdc80 && code <= 0xdcff ? "%" + (code - 0xdc00).toString(16) : encodeURIComponent(sign);
}).join("");
export const legible = (text) => text.replace(/[\ud800-\udfff]/gu, "\ufffd");
export const picture = (place, side) => `/api/picture?place=${encoded(place)}&side=${side}`;

export async function ask(method, path, body) {
  const raw = body instanceof Blob;
  const headers = { "X-Veilkit-Form": form };
  if (body !== undefined && !raw) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, { method, headers, body: body === undefined ? undefined : raw ? body : JSON.stringify(body), credentials: "same-origin" });
  } catch {
    throw new Error(t("error.gone"));
  }
  const type = answer.headers.get("content-type") || "";
  const found = type.startsWith("application/json") ? await answer.json() : await answer.text();
  if (!answer.ok) throw new Error(answer.status === 401 ? t("error.signin") : found.error || String(found));
  return found;
}
export const get = (path) => ask("GET", path);
export const post = (path, body = {}) => ask("POST", path, body);

export function say(text, seconds = 6) {
  const line = h("p", legible(text));
  document.getElementById("toast").append(line);
  setTimeout(() => line.remove(), 1000 * seconds);
}
export const failed = (error) => say(error.message, 10);
export const tried = (action) => async (...given) => { try { return await action(...given); } catch (error) { failed(error); } };

export function duration(seconds) {
  const minutes = Math.floor(seconds / 60), hours = Math.floor(minutes / 60);
  if (hours) return t("time.hours", { hours, minutes: minutes % 60 });
  return minutes ? t("time.minutes", { minutes, seconds: Math.round(seconds % 60) }) : t("time.seconds", { seconds: Math.max(1, Math.round(seconds)) });
}

// A folder browser. options: choose(place) for folders, file(place) where files may be chosen, all: also what is no picture.
export function browser(options) {
  const box = h("div");
  let before = 0;
  const open = async (place) => {
    const mine = ++before;
    let found;
    try { found = place === "" ? null : await get(`/api/folder?place=${encoded(place)}`); } catch (error) { failed(error); return; }
    if (mine === before) draw(found);
  };
  function draw(found) {
    const roots = state.about.folders;
    const folders = found ? found.folders : roots.map((each) => ({ ...each, kind: "folder" }));
    const above = found ? found.above : [];
    const crumbs = h("nav.crumbs", { "aria-label": t("browse.where") },
      roots.length > 1 && h("button", { type: "button", onclick: () => open("") }, t("browse.all")),
      above.map((each) => [h("span", { "aria-hidden": "true" }, "/"), h("button", { type: "button", onclick: () => open(each.place) }, legible(each.name))]));
    const list = h("ul.folders", folders.map((each) => h("li", h("button", { type: "button", onclick: () => open(each.place), title: each.path || "" },
      h("span", { "aria-hidden": "true" }, each.kind === "private" ? "◍" : "▸"), legible(each.name), each.kind !== "folder" && h("span.tag", t("kind." + each.kind))))));
    const parts = [crumbs];
    if (folders.length) parts.push(list);
    if (found && options.file) {
      const files = [...found.pictures, ...(options.all ? found.files : [])].slice(0, 300);
      if (files.length) parts.push(h("ul.folders", files.map((each) => h("li", h("button", { type: "button", onclick: () => options.file(each.place) }, legible(each.name))))));
    }
    if (found && !folders.length && !found.counts.pictures) parts.push(h("p.soft", t("browse.empty")));
    if (found && options.shown) parts.push(options.shown(found));
    if (found && options.choose) parts.push(h("p.row", h("button.main", { type: "button", onclick: () => options.choose(found) }, t(options.label || "browse.choose", { name: legible(found.name) })), h("span.soft.small", t("browse.holds", { pictures: number(found.counts.pictures), folders: number(found.counts.folders) }))));
    box.replaceChildren(...parts);
  }
  open(options.start || (state.about.folders.length === 1 ? "0" : ""));
  return box;
}

// A dialog that answers with a place, or null. sort: folder, file, any, or new (a name below a folder).
export function choose(sort, title) {
  return new Promise((resolve) => {
    let answer = null;
    const done = (place) => { answer = place; dialog.close(); };
    const name = h("input", { type: "text", "aria-label": t("browse.name"), placeholder: t("browse.name") });
    const dialog = h("dialog", { "aria-label": title },
      h("h2", title),
      sort === "new" && h("label.field", h("span", t("browse.name")), name),
      browser({
        all: sort !== "folder", file: sort === "file" || sort === "any" ? done : null,
        choose: sort === "file" ? null : sort === "new" ? (found) => (name.value.trim() ? done(`${found.place}/${name.value.trim()}`) : name.focus()) : (found) => done(found.place),
        label: sort === "new" ? "browse.here" : "browse.choose",
      }),
      h("p.row", h("button", { type: "button", onclick: () => dialog.close() }, t("do.cancel"))));
    dialog.addEventListener("close", () => { dialog.remove(); resolve(answer); });
    document.body.append(dialog);
    dialog.showModal();
  });
}

// A field of a form. name: as the command has it. Returns { element, value() }.
export function field(verb, name, values = {}) {
  const about = state.about.verbs[verb].find((each) => each.name === name);
  const label = t(`field.${name}`), hint = known(`hint.${verb}.${name}`) ? t(`hint.${verb}.${name}`) : known(`hint.${name}`) ? t(`hint.${name}`) : "";
  const initial = values[name] ?? "";
  const hinted = [h("span", label + (about.required ? " *" : "")), hint && h("span.hint", hint)];
  if (about.sort === "flag") {
    const input = h("input", { type: "checkbox", checked: initial === true });
    return { element: h("label.check", input, label), value: () => input.checked || undefined };
  }
  if (about.choices.length) {
    const input = h("select", h("option", { value: "" }, about.default ? t("choice.default", { value: choiceText(name, about.default) }) : t("choice.none")), about.choices.map((each) => h("option", { value: each, selected: each === initial }, choiceText(name, each))));
    return { element: h("label.field", hinted, input), value: () => input.value || undefined };
  }
  const places = ["folder", "file", "any", "new", "made"].includes(about.sort);
  const input = h("input", { type: "text", value: initial, inputMode: about.sort === "number" ? "decimal" : undefined, placeholder: about.default === null || about.default === "" ? "" : String(about.default) });
  const value = () => {
    const text = input.value.trim();
    if (!text) return undefined;
    return about.many ? text.split(/\s*[;\n]\s*/).filter(Boolean) : text;
  };
  if (!places) return { element: h("label.field", hinted, input), value };
  const pick = h("button", { type: "button", "aria-label": t("do.chooseFor", { name: label }), onclick: async () => {
    const place = await choose(about.sort === "made" ? "new" : about.sort, label);
    if (place === null) return;
    input.value = about.many && input.value ? `${input.value}; ${place}` : place;
    input.dispatchEvent(new Event("input", { bubbles: true }));
  } }, t("do.choose"));
  return { element: h("div.field.place", h("label", h("span.label", label + (about.required ? " *" : "")), hint && h("span.hint", hint), input), pick), value };
}
const choiceText = (name, value) => (known(`choice.${name}.${value}`) ? t(`choice.${name}.${value}`) : value);

export function commandBox(text) {
  return h("details", h("summary", t("command.same")), h("pre", legible(text)));
}
