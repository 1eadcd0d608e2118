// Graphile Worker: 24 jobs at once in a process, fetched by five hundred and completed together; a look every 100 ms
// for what falls due.
import { Logger, makeWorkerUtils, run, runMigrations } from "graphile-worker";
import { DSN, chunks, main, ran } from "./job.mjs";

const CONCURRENCY = 24, BATCH = 500, LOOK_MS = 100;

const logger = new Logger(() => () => {});
const utils = process.argv[2] === "work" ? null : await makeWorkerUtils({ connectionString: DSN, logger });
const spec = (n) => ({ identifier: "noop", payload: { n } });

async function work() {
  const worker = {
    connectionString: DSN,
    logger,
    concurrentJobs: CONCURRENCY,
    maxPoolSize: CONCURRENCY + 1,
    pollInterval: LOOK_MS,
    localQueue: { size: BATCH },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
  };
  const runner = await run({ preset: { worker }, taskList: { noop: (payload) => ran(payload.n) } });
  await runner.promise;
}

await main({
  setup: () => runMigrations({ connectionString: DSN, logger }),
  work,
  enqueue: (n) => utils.addJob("noop", { n }),
  fill: async (numbers) => {
    for (const chunk of chunks(numbers)) await utils.addJobs(chunk.map(spec));
  },
  schedule: (jobs) => utils.addJobs(jobs.map(([n, at]) => ({ ...spec(n), runAt: new Date(1000 * at) }))),
});
