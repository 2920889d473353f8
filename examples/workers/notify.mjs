#!/usr/bin/env node
// Notifies customers: a service that Rota sends its batches to. It needs no database, because Rota marks the orders
// that it reports as done. SECRET signs the requests, PORT is where it listens, and OUTBOX is a file that stands for the
// mail server: it gets a line for each message.
import {createHmac, timingSafeEqual} from 'node:crypto';
import {appendFileSync} from 'node:fs';
import {createServer} from 'node:http';

const WINDOW = 300; // seconds between the clocks of the worker and of this service
const LARGEST = 16 << 20; // bytes of a request
const seen = new Map(); // the batches of the window, so that nobody can send one of them again

// refusal says why a request is not from a worker, or returns nothing.
function refusal(headers, body, now) {
  const timestamp = headers['rota-timestamp'] ?? '';
  const signature = Buffer.from(headers['rota-signature'] ?? '');
  const mac = createHmac('sha256', process.env.SECRET).update(timestamp + '.').update(body).digest('hex');
  const want = Buffer.from('v1=' + mac);
  if (signature.length !== want.length || !timingSafeEqual(signature, want)) return 'wrong signature';
  if (!(Math.abs(now - Number(timestamp)) <= WINDOW)) return 'the request is too old';
}

// repeated remembers a batch, and says whether it was there before.
function repeated(id, now) {
  for (const [old, at] of seen) {
    if (at >= now - 2 * WINDOW) break;
    seen.delete(old);
  }
  if (seen.has(id)) return true;
  seen.set(id, now);
  return false;
}

// notify sends one message, and throws an error if that fails.
function notify(order) {
  if (!order.email.includes('@')) throw new Error('the address has no @');
  appendFileSync(process.env.OUTBOX, `${order.id}\n`);
}

function execute(batch) {
  return batch.items.map(({key, row}) => {
    try {
      notify(row);
      return {key, result: 'done'};
    } catch (e) {
      return {key, result: 'failed', error: e.message, permanent: true};
    }
  });
}

// answer returns the status and the body of a response.
function answer(headers, body) {
  const now = Date.now() / 1000;
  const refused = refusal(headers, body, now);
  if (refused) return [401, {error: refused}];
  const batch = JSON.parse(body);
  if (repeated(batch.batch, now)) return [409, {error: 'this request was here before'}];
  if (batch.op !== 'execute') return [200, {batch: batch.batch, error: `unknown op ${batch.op}`}];
  return [200, {batch: batch.batch, items: execute(batch)}];
}

const server = createServer((request, response) => {
  const chunks = [];
  let size = 0;
  request.on('data', (chunk) => {
    size += chunk.length;
    if (size > LARGEST) return request.destroy();
    chunks.push(chunk);
  });
  request.on('end', () => {
    let status, body;
    try {
      [status, body] = answer(request.headers, Buffer.concat(chunks));
    } catch (e) {
      [status, body] = [500, {error: e.message}];
    }
    response.writeHead(status, {'content-type': 'application/json'}).end(JSON.stringify(body));
  });
});
server.listen(process.env.PORT, '127.0.0.1', () => console.error(`listening on ${server.address().port}`));
