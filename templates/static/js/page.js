// Small conveniences of every page: theme, zone, copying, filters that apply themselves, menus, the dialog, toasts.

const root = document.documentElement;
const dialog = document.getElementById("dialog");

function remember(name, value) {
  document.cookie = `onthedot_${name}=${encodeURIComponent(value)}; path=/; max-age=31536000; samesite=lax`;
}

function say(text) {
  const toast = document.createElement("p");
  toast.className = "toast";
  toast.textContent = text;
  document.getElementById("toasts").append(toast);
}

// --- theme: as the system, then the other one, then back; the server writes it into the page, so nothing flashes

document.getElementById("theme").addEventListener("click", () => {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches;
  const order = dark ? ["", "light", "dark"] : ["", "dark", "light"];
  root.dataset.theme = order[(order.indexOf(root.dataset.theme) + 1) % 3];
  remember("theme", root.dataset.theme);
});

// --- zone: UTC, the browser's, the schedule's where the page has one; the server writes all times in it

document.getElementById("zone").addEventListener("click", () => {
  const zones = ["UTC", Intl.DateTimeFormat().resolvedOptions().timeZone, document.body.dataset.scheduleZone];
  const choices = [...new Set(zones.filter(Boolean))];
  remember("zone", choices[(choices.indexOf(root.dataset.zone) + 1) % choices.length]);
  const address = new URL(location.href);
  address.searchParams.delete("zone");
  address.href === location.href ? location.reload() : location.replace(address);
});

// --- copying, also where the clipboard is closed: it is open by HTTPS and on loopback only

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const field = document.createElement("textarea");
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
  say("Copied");
}

document.addEventListener("click", ({ target }) => {
  const copier = target.closest("[data-copy]");
  if (copier) copy(copier.dataset.copy);
  if (target.closest("[data-close]")) dialog.close();
  target.closest(".toast-close")?.parentElement.remove();
  for (const menu of document.querySelectorAll(".menu[open]")) if (!menu.contains(target)) menu.open = false;
});

document.addEventListener("keydown", ({ key }) => {
  if (key === "Escape") for (const menu of document.querySelectorAll(".menu[open]")) menu.open = false;
});

// --- filters: the form's address is the state of the list

document.addEventListener("change", ({ target }) => target.closest("[data-submit-on-change]")?.requestSubmit());

document.addEventListener("formdata", ({ target, formData }) => {
  if (!target.matches("[data-submit-on-change]")) return;
  for (const [name, value] of [...formData]) if (value === "") formData.delete(name);
});

// --- the dialog: htmx fills it, an action that was carried out closes it

document.addEventListener("htmx:after:swap", () => {
  if (dialog.childElementCount && !dialog.open) dialog.showModal();
  dialog.querySelector("[data-focus]")?.focus();
});
document.addEventListener("done", () => {
  dialog.close();
  for (const menu of document.querySelectorAll(".menu[open]")) menu.open = false; // it may have led to the dialog
});
dialog.addEventListener("close", () => dialog.replaceChildren());

// --- the tab says how many jobs fail, and its icon is red meanwhile: a pinned tab is a monitor

function mark() {
  const { level, failing } = document.getElementById("trouble").dataset;
  const verdict = document.querySelector("main [data-level]")?.dataset.level ?? level;
  const icon = document.querySelector("link[rel=icon]");
  icon.href = verdict === "bad" ? icon.dataset.bad : icon.dataset.good;
  document.title = (failing && `(${failing}) `) + document.title.replace(/^\(\d+\+?\) /, "");
}
document.addEventListener("htmx:after:swap", mark);
mark();

// --- toasts go by themselves, errors stay

new MutationObserver((changes) => {
  for (const { addedNodes } of changes)
    for (const node of addedNodes)
      if (node.classList?.contains("toast") && !node.classList.contains("toast-bad")) setTimeout(() => node.remove(), 6000);
}).observe(document.getElementById("toasts"), { childList: true });
