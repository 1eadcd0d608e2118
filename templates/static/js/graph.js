// A graph of steps: arrow keys go from card to card, to the nearest one in that direction. Without this: the table.

const AXES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

function middle(card) {
  const { x, y, width, height } = card.getBoundingClientRect();
  return [x + width / 2, y + height / 2];
}

function nearest(from, cards, [right, down]) {
  const [x, y] = middle(from);
  let best = null;
  let least = Infinity;
  for (const card of cards) {
    const columns = (card.dataset.column - from.dataset.column) * right;
    if (right ? columns < 1 : card.dataset.column !== from.dataset.column) continue; // up and down: within the column
    const [dx, dy] = [middle(card)[0] - x, middle(card)[1] - y];
    const ahead = dx * right + dy * down;
    const aside = Math.abs(dx * down) + Math.abs(dy * right);
    if (card === from || ahead < 1) continue;
    const distance = (right ? 4 : 1) * ahead + aside;
    if (distance < least) [best, least] = [card, distance];
  }
  return best;
}

document.addEventListener("keydown", (event) => {
  const from = event.target.closest?.(".step-card");
  const axis = AXES[event.key];
  if (!from || !axis || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  const to = nearest(from, document.querySelectorAll(".step-card"), axis);
  if (!to) return;
  to.focus();
  to.scrollIntoView({ block: "nearest", inline: "nearest" });
});
