"use strict";
// Asks the questions of this page and keeps the answers in this browser. It sends nothing.
(() => {
  const { study, questions } = JSON.parse(document.getElementById("data").textContent);
  const byCode = new Map(questions.map((question) => [question.code, question]));
  const place = `veilkit-study-${study}`;
  const at = (id) => document.getElementById(id);
  const HASTY = 150; // milliseconds in which nobody has looked: a key that was still held down

  // Memory where the browser keeps nothing for files, or is forbidden to.
  let memory = null;
  function load() {
    try { return JSON.parse(localStorage.getItem(place)) ?? memory; } catch { return memory; }
  }
  function keep(state) {
    memory = state;
    try { localStorage.setItem(place, JSON.stringify(state)); } catch { /* it stays in memory */ }
  }
  function forget() {
    memory = null;
    try { localStorage.removeItem(place); } catch { /* there was nothing */ }
  }

  // Order: everybody gets another one, and the same one again after a break. It need not be secret.
  function scrambled(text) {
    let value = 0x811c9dc5;
    for (const letter of text) value = Math.imul(value ^ letter.codePointAt(0), 0x01000193);
    for (const [shift, factor] of [[16, 0x45d9f3b], [15, 0x2c1b3c6d], [16, 0x297a2d39]]) value = Math.imul(value ^ (value >>> shift), factor);
    return (value ^ (value >>> 16)) >>> 0;
  }
  function ordered(items, salt) {
    const rank = (item) => scrambled(`${salt} ${item.code}`);
    return [...items].sort((one, other) => rank(one) - rank(other) || (one.code < other.code ? -1 : 1));
  }
  function newCode() {
    const letters = "abcdefghjkmnpqrstuvwxyz23456789";
    return Array.from(crypto.getRandomValues(new Uint32Array(8)), (word) => letters[word % letters.length]).join("");
  }

  let state = load();
  let order = [];
  let since = null; // when the question's pictures were there; null while no answer is taken

  function show(id) {
    for (const section of document.querySelectorAll("main > section")) section.hidden = section.id !== id;
    at("progress").hidden = id === "intro";
    const heading = at(id).querySelector("h1");
    window.scrollTo(0, 0);
    heading.focus({ preventScroll: true });
  }
  function valid(old) {
    return old !== null && typeof old === "object" && typeof old.participant === "string" && Array.isArray(old.answers)
      && old.answers.every((answer) => byCode.has(answer.question));
  }
  function intro() {
    if (!valid(state)) state = null;
    at("start").hidden = state !== null;
    at("resume").hidden = state === null;
    if (state !== null) {
      at("resume-text").textContent = `You have answered ${state.answers.length} of ${questions.length} questions as ${state.participant}.`;
    } else if (!at("participant").value) {
      at("participant").value = newCode();
    }
    show("intro");
  }
  function begin() {
    order = ordered(questions, state.participant);
    next();
  }
  function next() {
    since = null;
    const done = state.answers.length;
    at("bar").value = done;
    if (done >= order.length) { finish(); return; }
    at("count").textContent = `Question ${done + 1} of ${order.length}`;
    ask(order[done]);
  }

  function picture(address, text) {
    const image = document.createElement("img");
    image.src = address;
    image.alt = text;
    image.draggable = false;
    return image;
  }
  function framed(image, caption) {
    const figure = document.createElement("figure");
    const words = document.createElement("figcaption");
    words.textContent = caption;
    figure.append(image, words);
    return figure;
  }
  function button(key, label, answer) {
    const made = document.createElement("button");
    const sign = document.createElement("kbd");
    made.type = "button";
    sign.textContent = key;
    made.append(label, sign);
    made.dataset.key = key.toLowerCase();
    made.dataset.answer = answer;
    made.setAttribute("aria-keyshortcuts", key);
    made.addEventListener("click", () => answered(answer));
    return made;
  }
  function ask(question) {
    const pair = question.kind === "pair";
    const row = document.createElement("div");
    row.className = "row";
    at("pictures").className = question.kind;
    at("asked").textContent = pair ? "Is this the same person?" : "Which of these is the person?";
    if (pair) {
      row.append(
        framed(picture(question.shown, "First picture"), "First picture"),
        framed(picture(question.options[0].image, "Second picture"), "Second picture"),
      );
      const answers = document.createElement("div");
      answers.className = "answers";
      answers.append(button("Y", "Yes, the same", "same"), button("N", "No, somebody else", "different"));
      at("pictures").replaceChildren(row, answers);
      at("keys").textContent = "Press Y or N. Where you are not sure, guess.";
    } else {
      const options = ordered(question.options, `${state.participant} ${question.code}`);
      options.forEach((option, number) => {
        const made = button(String(number + 1), picture(option.image, `Choice ${number + 1}`), option.code);
        made.classList.add("pick");
        row.append(made);
      });
      row.setAttribute("role", "group");
      row.setAttribute("aria-label", "Choices");
      at("pictures").replaceChildren(framed(picture(question.shown, "The person"), "This person"), row);
      at("keys").textContent = `Press 1 to ${options.length}. Where you are not sure, guess.`;
    }
    at("question").dataset.code = question.code;
    delete at("question").dataset.ready;
    show("question");
    const images = [...at("pictures").querySelectorAll("img")];
    Promise.allSettled(images.map((image) => image.decode())).then(() => requestAnimationFrame(() => {
      if (at("question").dataset.code !== question.code) return;
      since = performance.now();
      at("question").dataset.ready = "yes";
    }));
  }
  function answered(answer) {
    if (since === null || performance.now() - since < HASTY) return;
    const question = order[state.answers.length];
    state.answers.push({ question: question.code, answer, ms: Math.round(performance.now() - since) });
    keep(state);
    next();
  }

  function text() {
    return JSON.stringify({ format: "veilkit-study-answers-1", study, participant: state.participant, answers: state.answers });
  }
  function finish() {
    at("count").textContent = "All questions answered";
    at("text").value = text();
    const link = at("download");
    link.href = URL.createObjectURL(new Blob([text()], { type: "application/json" }));
    link.download = `answers-${state.participant}.json`;
    show("end");
  }

  at("start").addEventListener("submit", (event) => {
    event.preventDefault();
    state = { participant: at("participant").value, answers: [] };
    keep(state);
    begin();
  });
  at("continue").addEventListener("click", begin);
  at("forget").addEventListener("click", () => {
    if (confirm("Delete the answers given so far on this computer?")) { forget(); state = null; intro(); at("participant").focus(); }
  });
  at("download").addEventListener("click", () => { at("saved").textContent = `Saved as ${at("download").download}, where your browser puts downloads.`; });
  at("copy").addEventListener("click", async () => {
    at("text").select();
    try { await navigator.clipboard.writeText(at("text").value); } catch { document.execCommand("copy"); }
    at("saved").textContent = "Copied.";
  });
  at("clear").addEventListener("click", () => {
    if (!confirm("Have you saved your answers? They are deleted here.")) return;
    forget();
    state = null;
    at("participant").value = "";
    at("consent").checked = false;
    intro();
  });
  document.addEventListener("keydown", (event) => {
    if (at("question").hidden || event.repeat || event.ctrlKey || event.metaKey || event.altKey) return;
    const chosen = [...at("pictures").querySelectorAll("button")].find((made) => made.dataset.key === event.key.toLowerCase());
    if (chosen) { event.preventDefault(); answered(chosen.dataset.answer); }
  });
  intro();
})();
