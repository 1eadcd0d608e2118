// pg-boss: batches of a thousand by two loops a process, woken by NOTIFY; due jobs are looked for at the shortest
// interval that it allows, half a second.
import { PgBoss } from "pg-boss";
import { DSN, chunks, main, ran } from "./job.mjs";

const BATCH = 1000, LOOPS = 2, LOOK_SECONDS = 0.5, QUEUE = "noop";

const boss = new PgBoss({ connectionString: DSN, max: 10, schedule: false, useListenNotify: true });
boss.on("error", (error) => console.error(error));
await boss.start();

const options = {
  batchSize: BATCH,
  localConcurrency: LOOPS,
  pollingIntervalSeconds: LOOK_SECONDS,
  notifyPollingIntervalSeconds: LOOK_SECONDS,
  burstWhenBatchFull: true,
};

async function work() {
  const stopped = new Promise((resolve) => process.on("SIGTERM", resolve));
  await boss.work(QUEUE, options, async (jobs) => jobs.forEach((job) => ran(job.data.n)));
  await stopped;
  await boss.stop({ graceful: true, timeout: 3000 });
}

await main({
  setup: () => boss.createQueue(QUEUE, { notify: true }),
  work,
  enqueue: (n) => boss.send(QUEUE, { n }),
  fill: async (numbers) => {
    for (const chunk of chunks(numbers)) await boss.insert(QUEUE, chunk.map((n) => ({ data: { n } })));
  },
  schedule: (jobs) => boss.insert(QUEUE, jobs.map(([n, at]) => ({ data: { n }, startAfter: new Date(1000 * at) }))),
});
