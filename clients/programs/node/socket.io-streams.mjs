// socket.io with the adapter for Redis streams: clients of two servers get what is sent to their rooms, each message once, in order; a
// client that comes back gets what it missed, also from before a kill of the server.

import assert from 'node:assert/strict';
import { createAdapter } from '@socket.io/redis-streams-adapter';
import { createServer } from 'node:http';
import { createClient } from 'redis';
import { Server } from 'socket.io';
import { io as connect } from 'socket.io-client';
import { ignoreErrors, killServer, range, run, sleep, until, url, within } from './job.mjs';

const MESSAGES = 100;

async function site() {
  const client = createClient({ url });
  ignoreErrors(client);
  await client.connect();
  const http = createServer();
  const io = new Server(http, {
    adapter: createAdapter(client, { blockTimeInMs: 200, heartbeatInterval: 500 }),
    connectionStateRecovery: { maxDisconnectionDuration: 60_000 },
  });
  io.on('connection', (socket) => socket.on('join', (room, done) => { socket.join(room); done(); }));
  await new Promise((resolve) => http.listen(0, '127.0.0.1', resolve));
  return { io, address: `http://127.0.0.1:${http.address().port}` };
}

async function member({ address }, room) {
  const socket = connect(address, { transports: ['websocket'], reconnectionDelay: 20, forceNew: true });
  const received = [];
  let greetings = 0;
  socket.on('hello', () => { greetings += 1; });
  socket.on('message', (number) => received.push(number));
  socket.on('question', (answer) => answer(room));
  await within(new Promise((resolve) => socket.on('connect', resolve)), 'a connection');
  await within(socket.emitWithAck('join', room), 'the room');
  return { socket, received, greeted: () => greetings > 0 };
}

run(async () => {
  const [first, second] = [await site(), await site()];
  const members = [await member(first, 'tea'), await member(second, 'tea'), await member(second, 'tea')];
  const stranger = await member(second, 'coffee');
  await until(async () => (await first.io.of('/').adapter.serverCount()) === 2, 'the servers to know each other');

  // A server reads the stream from its end until it has read an entry: it may miss what is sent before that.
  await until(async () => {
    first.io.emit('hello');
    await sleep(20);
    return [...members, stranger].every(({ greeted }) => greeted());
  }, 'the servers to read the stream');

  const expectMessages = async (from, to) => {
    for (const number of range(from, to)) first.io.to('tea').emit('message', number);
    for (const { received } of members) await until(() => received.length >= to, `messages up to ${to}`);
  };
  await expectMessages(0, MESSAGES);
  assert.deepEqual((await within(first.io.fetchSockets(), 'the sockets of both servers')).length, 4);
  const answers = await within(first.io.timeout(20_000).to('tea').emitWithAck('question'), 'answers of all');
  assert.deepEqual(answers, ['tea', 'tea', 'tea']);

  // A connection breaks, and messages are sent that its client misses: the stream has them.
  const [before, { socket, received }, behind] = members;
  const { id } = socket;
  socket.io.reconnection(false);
  socket.io.engine.close();
  await until(() => !socket.connected, 'the connection to break');
  for (const number of range(MESSAGES, MESSAGES + 5)) first.io.to('tea').emit('message', number);
  for (const member of [before, behind]) await until(() => member.received.length >= MESSAGES + 5, 'messages while one is away');

  await killServer();
  // A server that cannot reach the stream drops what it should send: begin when it can.
  const ask = () => first.io.timeout(1000).to('tea').emitWithAck('question').catch(() => []);
  await until(async () => (await ask()).length === 2, 'the servers to be back');
  socket.io.reconnection(true);
  socket.connect();
  await until(() => socket.connected && received.length >= MESSAGES + 5, 'what was missed');
  assert(socket.recovered && socket.id === id, 'the session was recovered');
  await expectMessages(MESSAGES + 5, 2 * MESSAGES + 5);
  for (const member of members) {
    await until(() => member.received.length >= 2 * MESSAGES + 5, 'the last messages');
    assert.deepEqual(member.received, range(0, 2 * MESSAGES + 5));
  }
  assert.deepEqual(stranger.received, []);
  await within(second.io.in('coffee').disconnectSockets(), 'the others to be told');
  await until(() => !stranger.socket.connected, 'the stranger to be disconnected');
});
