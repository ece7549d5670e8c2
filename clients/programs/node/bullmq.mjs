// BullMQ: jobs with priorities, retries, a delay, a schedule, results and a flow of parents and children, while the server is killed.

import assert from 'node:assert/strict';
import { FlowProducer, Queue, QueueEvents, Worker } from 'bullmq';
import { connection, expectNotes, ignoreErrors, killServer, note, notes, range, run, sleep, until, within } from './job.mjs';

const CONCURRENCY = 4;
// A worker that does not renew its lock of a job within this has lost the job, which is then done again.
const lease = { lockDuration: 3000, stalledInterval: 1000, maxStalledCount: 5 };

const jobs = {
  async square({ data: { number } }) {
    await sleep(2);
    note(`square ${number}`);
    return number * number;
  },
  async failsTwice({ data: { number }, attemptsMade }) {
    note(`attempt ${number} ${attemptsMade}`);
    assert.equal(attemptsMade, 2, 'this was to be tried again');
  },
  async later({ data: { sent } }) {
    note(`later ${Date.now() - sent >= 500}`);
  },
  async tick() {
    note('tick');
  },
  async sum(job) {
    return Object.values(await job.getChildrenValues()).reduce((sum, value) => sum + value, 0);
  },
  async alwaysFails() {
    throw new Error('as wanted');
  },
};

run(async () => {
  const queue = new Queue('jobs', { connection });
  const events = new QueueEvents('jobs', { connection });
  const flows = new FlowProducer({ connection });
  const worker = new Worker('jobs', (job) => jobs[job.name](job), { connection, concurrency: CONCURRENCY, ...lease });
  ignoreErrors(queue, events, flows, worker);
  await events.waitUntilReady();

  for (const number of range(0, 10)) await queue.add('failsTwice', { number }, { attempts: 3, backoff: 20 });
  await expectNotes('attempt', range(0, 10).flatMap((number) => [0, 1, 2].map((attempt) => `${number} ${attempt}`)));
  await queue.add('later', { sent: Date.now() }, { delay: 500 });
  await expectNotes('later', [true]);
  const failing = await queue.add('alwaysFails', {});
  await assert.rejects(within(failing.waitUntilFinished(events), 'the failing job'), /as wanted/);
  const children = range(0, 10).map((number) => ({ name: 'square', queueName: 'jobs', data: { number } }));
  const { job: parent } = await flows.add({ name: 'sum', queueName: 'jobs', children });
  assert.equal(await within(parent.waitUntilFinished(events), 'the flow'), 285);
  await queue.add('square', { number: 10 }, { jobId: 'unique' });
  await queue.add('square', { number: 11 }, { jobId: 'unique' });
  await queue.upsertJobScheduler('ticks', { every: 500 }, { name: 'tick' });

  await queue.addBulk(range(100, 400).map((number) => ({ name: 'square', data: { number }, opts: { priority: 1 + (number % 3) } })));
  await until(() => notes('square').length >= 60, 'some of the jobs');
  await killServer();
  for (const number of range(400, 500)) await queue.add('square', { number });
  await expectNotes('square', [...range(0, 11), ...range(100, 500)], { repeated: CONCURRENCY });
  await until(async () => (await queue.getCompletedCount()) >= 400, 'the jobs to be completed');
  await until(async () => (await queue.getJobCountByTypes('active', 'waiting', 'prioritized')) === 0, 'all jobs to be finished');
  assert.equal(await queue.getFailedCount(), 1);
  for (const job of await queue.getCompleted()) {
    if (job.name === 'square') assert.equal(job.returnvalue, job.data.number ** 2);
  }
  const ticks = notes('tick').length;
  await until(() => notes('tick').length >= ticks + 2, 'the schedule after the kill');
});
