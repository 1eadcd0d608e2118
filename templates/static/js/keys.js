// The keyboard. What a key does stands in the page: `data-key="g j"` on a link, a button or a field. So only keys
// whose targets exist do anything, and the help lists exactly those.

const dialog = document.getElementById("keys");
const switchOn = document.getElementById("keys-on"); // single keys can be turned off (WCAG 2.1.4)
const ROW_KEYS = [["j", "Next row"], ["k", "Previous row"]];
const OPEN_KEYS = [["Enter", "Open the row"]];
const PICK_KEYS = [["x", "Select the row"], ["Shift x", "Select up to the row"]];
const PAGE_KEYS = [["r", "Reload"], ["c", "Copy the address"], ["Esc", "Clear, close"]];

let prefix = "";

const rows = () => [...document.querySelectorAll(".rows tbody tr[id]")];
const here = () => document.activeElement.closest?.(".rows tbody tr[id]");
const types = (element) => element.closest("input:not([type=checkbox]), select, textarea, [contenteditable]");

function move(step) {
  const list = rows();
  const at = list.indexOf(here());
  list[at < 0 ? (step > 0 ? 0 : list.length - 1) : Math.min(Math.max(at + step, 0), list.length - 1)]?.focus();
}

function pick(shiftKey) {
  here()?.querySelector(".pick")?.dispatchEvent(new MouseEvent("click", { bubbles: true, cancelable: true, shiftKey }));
}

const actions = {
  j: () => move(1),
  k: () => move(-1),
  x: () => pick(false),
  X: () => pick(true),
  Enter: () => document.activeElement === here() && here().querySelector("[data-open]")?.click(),
  Escape: () => (document.getElementById("bulk")?.reset(), document.activeElement.blur()),
  r: () => location.reload(),
  c: () => copyAddress(),
};

function copyAddress() {
  const copier = document.createElement("button");
  copier.dataset.copy = location.href;
  document.body.append(copier);
  copier.click();
  copier.remove();
}

function press(key) {
  const target = document.querySelector(`[data-key="${CSS.escape(key)}"]`);
  if (!target) return false;
  target.matches("input") ? target.focus() : target.click();
  return true;
}

document.addEventListener("keydown", (event) => {
  const { key, target } = event;
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || document.querySelector("dialog[open]")) return;
  if (types(target)) return void (key === "Escape" && target.blur());
  if (!switchOn.checked && key.length === 1) return;
  const chord = prefix ? `${prefix} ${key}` : key;
  prefix = key === "g" && !prefix ? "g" : "";
  if (prefix) return;
  if (press(chord)) return event.preventDefault();
  if (actions[chord]) actions[chord]();
});

// --- help

function entry([key, name]) {
  const [term, detail] = [document.createElement("dt"), document.createElement("dd")];
  term.append(...key.split(" ").flatMap((part) => [Object.assign(document.createElement("kbd"), { textContent: part }), " "]));
  detail.textContent = name;
  return [term, detail];
}

function listed() {
  const own = [...document.querySelectorAll("[data-key]")].map((target) => [target.dataset.key, target.dataset.keyName]);
  const row = rows().length ? ROW_KEYS : [];
  const open = document.querySelector("[data-open]") ? OPEN_KEYS : [];
  const pick = document.querySelector(".pick") ? PICK_KEYS : [];
  return [...own, ...row, ...open, ...pick, ...PAGE_KEYS];
}

document.getElementById("help").addEventListener("click", () => {
  dialog.querySelector("dl").replaceChildren(...listed().flatMap(entry));
  dialog.showModal();
});

switchOn.checked = localStorage.getItem("onthedot_keys") !== "off";
switchOn.addEventListener("change", () => localStorage.setItem("onthedot_keys", switchOn.checked ? "on" : "off"));
