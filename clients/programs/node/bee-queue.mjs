// bee-queue: jobs with retries, a delay and results, while the server is killed. A queue loads its scripts when it is made
// and does not notice that a restarted server has none: the service is restarted, too.

import assert from 'node:assert/strict';
import Queue from 'bee-queue';
import { connection, expectNotes, ignoreErrors, killServer, note, notes, range, run, sleep, until, within } from './job.mjs';

const CONCURRENCY = 4;
const options = {
  redis: { ...connection, retry_strategy: () => 50 },
  activateDelayedJobs: true,
  autoConnect: true,
  // A job whose worker said nothing for this long is done again.
  stallInterval: 1000,
};

const handlers = {
  async square({ data: { number } }) {
    await sleep(2);
    note(`square ${number}`);
    return number * number;
  },
  async failsTwice(job) {
    const attempt = 3 - job.options.retries;
    note(`attempt ${job.data.number} ${attempt}`);
    assert.equal(attempt, 2, 'this was to be tried again');
  },
  async later({ data: { sent } }) {
    note(`later ${Date.now() - sent >= 500}`);
  },
};

async function service() {
  const queue = new Queue('jobs', options);
  const worker = new Queue('jobs', options);
  ignoreErrors(queue, worker);
  await within(Promise.all([queue.ready(), worker.ready()]), 'the queue');
  worker.process(CONCURRENCY, (job) => handlers[job.data.handler](job));
  worker.checkStalledJobs(500).catch(() => {});
  return queue;
}

run(async () => {
  let queue = await service();
  for (const number of range(0, 10)) await queue.createJob({ handler: 'failsTwice', number }).retries(3).save();
  await expectNotes('attempt', range(0, 10).flatMap((number) => [0, 1, 2].map((attempt) => `${number} ${attempt}`)));
  await queue.createJob({ handler: 'later', sent: Date.now() }).delayUntil(Date.now() + 500).save();
  await expectNotes('later', [true]);
  const job = queue.createJob({ handler: 'square', number: 7 });
  const result = new Promise((resolve) => job.on('succeeded', resolve));
  await job.save();
  assert.equal(await within(result, 'a result'), 49);

  for (const number of range(100, 400)) await queue.createJob({ handler: 'square', number }).save();
  await until(() => notes('square').length >= 30, 'some of the jobs');
  await killServer();
  queue = await service();
  for (const number of range(400, 500)) await queue.createJob({ handler: 'square', number }).save();
  await expectNotes('square', [7, ...range(100, 500)], { repeated: CONCURRENCY });
  await until(async () => {
    const health = await queue.checkHealth();
    return health.waiting === 0 && health.active === 0 && health.delayed === 0;
  }, 'all jobs to be finished');
  assert.equal((await queue.checkHealth()).failed, 0);
});
