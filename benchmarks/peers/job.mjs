// The twin of job.py for the scripts in Node: the job itself, and the load put on a system.
import fs from "node:fs";

export const DSN = process.env.PEER_DSN;
const FOLDER = process.env.PEER_FOLDER;
const WARM_UPS = 5, LEAD_SECONDS = 5, FLUSH_MS = 20, CHUNK = 5000;

const now = () => (performance.timeOrigin + performance.now()) / 1000;
const sleep = (seconds) => new Promise((resolve) => setTimeout(resolve, Math.max(0, 1000 * seconds)));
const bytes = (records) => Buffer.from(new Float64Array(records.flat()).buffer);

let book, records = [];

// Note that a job runs, and when: all that the job does.
export function ran(number) {
  records.push(number, now());
  if (book === undefined) {
    book = fs.openSync(`${FOLDER}/ran-${process.pid}`, "a");
    setInterval(flush, FLUSH_MS).unref();
    process.on("exit", flush);
  }
}

function flush() {
  if (records.length === 0) return;
  fs.writeSync(book, bytes(records));
  records = [];
}

// Do what the command line says with a system: { setup, work, enqueue, fill, schedule }, as in job.py.
export async function main(peer) {
  const [command, ...numbers] = process.argv.slice(2);
  const range = (length) => Array.from({ length }, (_, number) => number);
  const commands = {
    setup: () => peer.setup(),
    work: () => peer.work(),
    fill: (jobs) => peer.fill(range(jobs)),
    spread: (jobs, seconds) => spread(peer, range(jobs), seconds),
    idle: (jobs, gapMs) => idle(peer, range(jobs), gapMs),
  };
  await commands[command](...numbers.map(Number));
  process.exit(0);
}

// Create jobs in advance, each due on its own instant.
async function spread(peer, numbers, seconds) {
  await warmUp(peer);
  const first = Math.ceil(now()) + LEAD_SECONDS;
  const due = numbers.map((number) => [number, first + (seconds * number) / numbers.length]);
  await peer.schedule(due);
  if (now() > first) throw new Error(`${numbers.length} jobs could not be scheduled within ${LEAD_SECONDS} s`);
  fs.writeFileSync(`${FOLDER}/asked`, bytes(due));
}

// Create one job after the other, while nothing else happens.
async function idle(peer, numbers, gapMs) {
  await warmUp(peer);
  const began = now(), asked = [];
  for (const number of numbers) {
    await sleep(began + (number * gapMs) / 1000 - now());
    asked.push([number, now()]);
    await peer.enqueue(number);
  }
  fs.writeFileSync(`${FOLDER}/asked`, bytes(asked));
}

async function warmUp(peer) {
  for (let number = -WARM_UPS; number < 0; number++) {
    await peer.enqueue(number);
    await sleep(0.3);
  }
}

export const chunks = (items) =>
  Array.from({ length: Math.ceil(items.length / CHUNK) }, (_, i) => items.slice(i * CHUNK, (i + 1) * CHUNK));
