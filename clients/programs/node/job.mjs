// What the programs in Node share.

import assert from 'node:assert/strict';
import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';

export const port = Number(process.env.PROGRAM_PORT);
export const connection = { host: '127.0.0.1', port };
export const url = `redis://127.0.0.1:${port}`;
const folder = process.env.PROGRAM_FOLDER;
const patience = 1000 * Number(process.env.PROGRAM_PATIENCE);

export const sleep = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));

// Runs a program: it fails with what it throws, and ends whatever is still open when it is done.
export function run(main) {
  main().then(
    () => process.exit(0),
    (error) => {
      console.error(error);
      process.exit(1);
    },
  );
}

// Has the server killed with SIGKILL and restarted on its data.
export async function killServer() {
  writeFileSync(`${folder}/kill`, '');
  await until(() => !existsSync(`${folder}/kill`), 'the server to be restarted');
}

export async function until(condition, what) {
  const deadline = Date.now() + patience;
  while (!(await condition())) {
    assert(Date.now() < deadline, `waited too long for ${what}`);
    await sleep(10);
  }
}

// Gives up what takes longer than any part of a program should.
export async function within(promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`waited too long for ${what}`)), patience);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}

// Connections that break while the server is away are no failure: their clients connect again.
export const ignoreErrors = (...emitters) => emitters.forEach((emitter) => emitter.on('error', () => {}));

// Notes in a file that a job was done: the file does not depend on the server.
export const note = (line) => appendFileSync(`${folder}/notes`, `${line}\n`);

// Returns the notes that begin with this, in the order in which they were written.
export function notes(kind = '') {
  const lines = existsSync(`${folder}/notes`) ? readFileSync(`${folder}/notes`, 'utf8').split('\n') : [];
  return lines.filter((line) => line.startsWith(kind) && line !== '');
}

// Waits until each of the expected jobs is noted. At most `repeated` of them may have been done more than once, and no other job.
export async function expectNotes(kind, expected, { repeated = 0 } = {}) {
  const wanted = new Set(expected.map((item) => `${kind} ${item}`));
  const counts = () => {
    const counted = new Map();
    for (const line of notes(`${kind} `)) counted.set(line, (counted.get(line) ?? 0) + 1);
    return counted;
  };
  await until(() => counts().size >= wanted.size, `all jobs of ${kind}`);
  const found = counts();
  for (const line of found.keys()) assert(wanted.has(line), `not asked for: ${line}`);
  const again = [...found].filter(([, count]) => count > 1);
  assert(again.length <= repeated, `done more than once: ${again}`);
}

export const range = (from, to) => Array.from({ length: to - from }, (_, index) => from + index);
