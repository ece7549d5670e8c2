// rate-limiter-flexible: a limit admits exactly its number of points among many clients, and through a kill of the server.

import assert from 'node:assert/strict';
import Redis from 'ioredis';
import { BurstyRateLimiter, RateLimiterRedis, RateLimiterQueue, RateLimiterUnion } from 'rate-limiter-flexible';
import { connection, ignoreErrors, killServer, range, run, until } from './job.mjs';

const POINTS = 500;
const KEYS = range(0, 10).map((number) => `client ${number}`);

// Returns how many of so many requests are admitted for a key.
async function admitted(limiter, key, requests) {
  const answers = await Promise.allSettled(range(0, requests).map(() => limiter.consume(key)));
  for (const { status, reason } of answers) assert(status === 'fulfilled' || !(reason instanceof Error), reason);
  return answers.filter(({ status }) => status === 'fulfilled').length;
}

run(async () => {
  const clients = range(0, 4).map(() => new Redis(connection));
  ignoreErrors(...clients);
  const limiter = (options) => clients.map((storeClient) => new RateLimiterRedis({ storeClient, duration: 3600, ...options }));
  const hourly = limiter({ points: POINTS, keyPrefix: 'hourly' });
  const admit = async (requests) => {
    const rounds = KEYS.flatMap((key) => hourly.map((each) => admitted(each, key, requests)));
    return (await Promise.all(rounds)).reduce((sum, count) => sum + count, 0);
  };
  const before = await admit(75);
  assert.equal(before, KEYS.length * 300);
  await killServer();
  await until(async () => (await clients[0].ping().catch(() => '')) === 'PONG', 'the client');
  assert.equal(before + (await admit(75)), KEYS.length * POINTS);
  const state = await hourly[0].get(KEYS[0]);
  assert(state.remainingPoints === 0 && state.consumedPoints > POINTS && state.msBeforeNext > 3_000_000);
  await hourly[0].reward('rewarded', 2);
  assert.equal(await admitted(hourly[1], 'rewarded', POINTS + 10), POINTS + 2);
  await hourly[0].delete('rewarded');
  assert.equal(await hourly[0].get('rewarded'), null);

  const [blocking] = limiter({ points: 3, keyPrefix: 'blocking', blockDuration: 7200 });
  assert.equal(await admitted(blocking, 'key', 5), 3);
  assert((await blocking.get('key')).msBeforeNext > 3_700_000, 'blocked for longer than the window');
  const [slow, burst] = [limiter({ points: 2, keyPrefix: 'slow' })[0], limiter({ points: 5, keyPrefix: 'burst' })[0]];
  assert.equal(await admitted(new BurstyRateLimiter(slow, burst), 'key', 20), 7);
  const union = new RateLimiterUnion(limiter({ points: 4, keyPrefix: 'a' })[0], limiter({ points: 9, keyPrefix: 'b' })[0]);
  const answers = await Promise.allSettled(range(0, 10).map(() => union.consume('key')));
  assert.equal(answers.filter(({ status }) => status === 'fulfilled').length, 4);

  // A queue of requests, of which five begin in each period.
  const queue = new RateLimiterQueue(limiter({ points: 5, duration: 1, keyPrefix: 'queue' })[0], { maxQueueSize: 100 });
  const begin = Date.now();
  await Promise.all(range(0, 12).map(() => queue.removeTokens(1, 'key')));
  assert(Date.now() - begin >= 1000, 'twelve requests with five in each second take two seconds to begin');
});
