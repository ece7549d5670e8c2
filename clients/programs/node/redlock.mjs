// redlock: one holder at a time; a lock that is held when the server is killed is still held after it.

import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import Redis from 'ioredis';
import Redlock from 'redlock';
import { connection, ignoreErrors, killServer, range, run, sleep, within } from './job.mjs';

const HOLDERS = 8;
const ROUNDS = 25;
const file = `${process.env.PROGRAM_FOLDER}/number`;

// Reads a number, pauses, and writes the next one: without a lock most of these get lost.
async function countUp() {
  const number = Number(await readFile(file, 'utf8'));
  await sleep(1);
  await writeFile(file, String(number + 1));
}

run(async () => {
  const client = new Redis(connection);
  ignoreErrors(client);
  const patient = new Redlock([client], { retryCount: -1, retryDelay: 5, retryJitter: 5 });
  const impatient = new Redlock([client], { retryCount: 0 });
  await writeFile(file, '0');
  const holder = async () => {
    for (const _ of range(0, ROUNDS)) {
      const lock = await patient.lock('counter', 30_000);
      await countUp();
      await lock.unlock();
    }
  };
  await within(Promise.all(range(0, HOLDERS).map(holder)), 'the holders');
  assert.equal(Number(await readFile(file, 'utf8')), HOLDERS * ROUNDS, 'two held the lock at one time');

  let kept = await impatient.lock(['kept', 'kept too'], 60_000);
  await assert.rejects(impatient.lock('kept too', 60_000), Redlock.LockError);
  await killServer();
  await assert.rejects(impatient.lock('kept', 60_000), Redlock.LockError, 'the lock was lost with the server');
  kept = await kept.extend(60_000);
  await kept.unlock();
  await (await impatient.lock('kept', 60_000)).unlock();

  const short = await impatient.lock('short', 100);
  const successor = await within(patient.lock('short', 60_000), 'a lock to end with its time');
  await assert.rejects(short.extend(60_000), Redlock.LockError, 'who lost a lock could extend it');
  await successor.unlock();
});
