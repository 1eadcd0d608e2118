// The end of a log that may go on: it is asked for while the execution runs. Lines are only added, so nothing that
// somebody reads or has selected moves, except that the view follows where it stands at the end.

const EVERY_MS = 2000;
const log = document.querySelector(".log");
const follows = () => log.scrollHeight - log.scrollTop - log.clientHeight < 24;

let atEnd = true;

function ask() {
  const tail = document.getElementById("log-tail");
  if (!tail || document.hidden || document.getElementById("live").dataset.state === "paused") return;
  atEnd = follows();
  tail.dispatchEvent(new Event("tail"));
}

document.addEventListener("htmx:after:swap", () => {
  if (document.querySelector(".log > [id^=L]")) document.querySelector(".log-none")?.remove();
  if (atEnd && document.getElementById("log-tail")) log.scrollTop = log.scrollHeight;
});

if (!location.hash.startsWith("#L")) log.scrollTop = log.scrollHeight;
setInterval(ask, EVERY_MS);
