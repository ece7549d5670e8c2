// express-rate-limit with rate-limit-redis: two servers of one site admit exactly the limit together, through a kill of the server.

import assert from 'node:assert/strict';
import express from 'express';
import { rateLimit } from 'express-rate-limit';
import Redis from 'ioredis';
import { RedisStore } from 'rate-limit-redis';
import { connection, ignoreErrors, killServer, range, run } from './job.mjs';

const LIMIT = 200;

async function site() {
  const client = new Redis(connection);
  ignoreErrors(client);
  const app = express();
  const store = new RedisStore({ sendCommand: (command, ...rest) => client.call(command, ...rest) });
  const keyGenerator = (request) => request.headers.client;
  app.use(rateLimit({ windowMs: 3_600_000, limit: LIMIT, standardHeaders: 'draft-8', store, keyGenerator }));
  app.get('/', (_, response) => response.send('hello'));
  const server = await new Promise((resolve) => {
    const listening = app.listen(0, '127.0.0.1', () => resolve(listening));
  });
  return `http://127.0.0.1:${server.address().port}/`;
}

run(async () => {
  const sites = [await site(), await site()];
  const counts = { ann: {}, bob: {} };
  const visit = (client, times) => Promise.all(range(0, times).map(async (number) => {
    const { status } = await fetch(sites[number % 2], { headers: { client } });
    counts[client][status] = (counts[client][status] ?? 0) + 1;
  }));
  await visit('ann', 150);
  await visit('bob', 150);
  await killServer();
  await visit('ann', 150);
  await visit('bob', 150);
  assert.deepEqual(counts, { ann: { 200: LIMIT, 429: 100 }, bob: { 200: LIMIT, 429: 100 } });
  const refused = await fetch(sites[0], { headers: { client: 'ann' } });
  assert.equal(refused.status, 429);
  assert.match(refused.headers.get('ratelimit'), /r=0; t=3[0-9]{3}/);
});
