// A form that is worked on for a while: `data-guard` asks before it is left unsaved, Ctrl-Enter saves it, a preset fills
// in its field, and what the server says beside a field marks the field.

const form = document.querySelector("form[data-guard]");
const state = () => new URLSearchParams(new FormData(form)).toString();
let saved = document.querySelector("[role=alert]") ? "" : state();

addEventListener("beforeunload", (event) => saved !== null && saved !== state() && event.preventDefault());
form.addEventListener("submit", ({ submitter }) => {
  saved = null;
  setTimeout(() => submitter && (submitter.disabled = true)); // after its name and value were taken
});
addEventListener("pageshow", () => {
  for (const button of form.querySelectorAll("button:disabled")) button.disabled = false; // come back to by the back button
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  form.requestSubmit(form.querySelector(".save [type=submit]"));
});

form.addEventListener("click", (event) => {
  const preset = event.target.closest("[data-expression]");
  if (!preset) return;
  event.preventDefault();
  const field = form.elements["schedule.expression"];
  field.value = preset.dataset.expression;
  field.dispatchEvent(new Event("input", { bubbles: true }));
});

const opened = new Set(); // in the preview, which comes anew with every key
document.getElementById("preview").addEventListener("click", ({ target }) => {
  const part = target.closest("summary")?.parentElement;
  if (part) part.open ? opened.delete(part.dataset.part) : opened.add(part.dataset.part); // it opens after the click
});

document.addEventListener("htmx:after:swap", () => {
  for (const part of document.querySelectorAll("#preview [data-part]")) part.open = opened.has(part.dataset.part);
  for (const help of form.querySelectorAll(".help[id^=help-]")) {
    const field = document.getElementById(help.id.replace("help-", "field-"));
    const bad = help.querySelector(".bad");
    field?.closest(".field")?.classList.toggle("field-bad", Boolean(bad));
    bad ? field?.setAttribute("aria-invalid", "true") : field?.removeAttribute("aria-invalid");
  }
});

document.querySelector("[data-focus]")?.focus();
