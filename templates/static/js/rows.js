// Selecting rows: one, a range with Shift, all on the page. Without this, row by row.

const picks = () => [...document.querySelectorAll(".pick")];
const all = document.getElementById("pick-all");
const picked = document.getElementById("picked");
let last = null;

function show() {
  if (!picked) return;
  const count = picks().filter((pick) => pick.checked).length;
  picked.textContent = `${count} selected`;
  if (all) [all.checked, all.indeterminate] = [count > 0 && count === picks().length, count > 0 && count < picks().length];
}

function pickUpTo(pick) {
  const [from, to] = [picks().indexOf(last), picks().indexOf(pick)].sort((a, b) => a - b);
  for (const between of picks().slice(Math.max(from, 0), to + 1)) between.checked = pick.checked;
}

document.addEventListener("click", ({ target, shiftKey }) => {
  if (!target.matches?.(".pick")) return;
  if (shiftKey && last) pickUpTo(target);
  last = target;
  show();
});

all?.addEventListener("change", () => {
  for (const pick of picks()) pick.checked = all.checked;
  show();
});

document.getElementById("bulk")?.addEventListener("reset", () => setTimeout(show));
document.addEventListener("done", () => document.getElementById("bulk")?.reset());
show();
