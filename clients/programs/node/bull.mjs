// Bull: jobs with priorities, retries, a delay, a repeated job, results and a limit of their rate, while the server is killed.

import assert from 'node:assert/strict';
import Bull from 'bull';
import { expectNotes, ignoreErrors, killServer, note, notes, range, run, sleep, until, url, within } from './job.mjs';

const CONCURRENCY = 4;
const settings = { lockDuration: 3000, stalledInterval: 1000, maxStalledCount: 5 };

run(async () => {
  const queue = new Bull('jobs', url, { settings });
  const limited = new Bull('limited', url, { settings, limiter: { max: 5, duration: 400 } });
  ignoreErrors(queue, limited);
  queue.process('square', CONCURRENCY, async ({ data: { number } }) => {
    await sleep(2);
    note(`square ${number}`);
    return number * number;
  });
  queue.process('failsTwice', async ({ data: { number }, attemptsMade }) => {
    note(`attempt ${number} ${attemptsMade}`);
    assert.equal(attemptsMade, 2, 'this was to be tried again');
  });
  queue.process('later', async ({ data: { sent } }) => note(`later ${Date.now() - sent >= 500}`));
  queue.process('tick', async () => note('tick'));
  limited.process(20, async () => note(`limited ${Date.now()}`));

  for (const number of range(0, 10)) await queue.add('failsTwice', { number }, { attempts: 3, backoff: 20 });
  await expectNotes('attempt', range(0, 10).flatMap((number) => [0, 1, 2].map((attempt) => `${number} ${attempt}`)));
  await queue.add('later', { sent: Date.now() }, { delay: 500 });
  await expectNotes('later', [true]);
  await queue.add('square', { number: 1 }, { jobId: 'unique' });
  const same = await queue.add('square', { number: 2 }, { jobId: 'unique' });
  assert.equal(await within(same.finished(), 'a result'), 1);
  await limited.addBulk(range(0, 12).map((number) => ({ data: { number } })));
  await until(() => notes('limited').length === 12, 'the limited jobs');
  const times = notes('limited').map((line) => Number(line.split(' ')[1]));
  // Twelve jobs with five in each period begin in three periods.
  assert(times[11] - times[0] >= 400, `${times}`);
  await queue.add('tick', {}, { repeat: { every: 500 } });

  await queue.addBulk(range(100, 400).map((number) => ({ name: 'square', data: { number }, opts: { priority: 1 + (number % 3) } })));
  await until(() => notes('square').length >= 60, 'some of the jobs');
  await killServer();
  const added = [];
  for (const number of range(400, 500)) added.push(await queue.add('square', { number }));
  await expectNotes('square', [1, ...range(100, 500)], { repeated: CONCURRENCY });
  for (const job of added) assert.equal(await within(job.finished(), 'a result'), job.data.number ** 2);
  await until(async () => (await queue.getJobCountByTypes(['active', 'waiting'])) === 0, 'all jobs to be finished');
  assert.equal(await queue.getFailedCount(), 0);
  const ticks = notes('tick').length;
  await until(() => notes('tick').length >= ticks + 2, 'the repeated job after the kill');
});
