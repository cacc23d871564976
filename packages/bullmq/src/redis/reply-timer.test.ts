// Tests how long Redis may take to reply, while the event loop is blocked and otherwise.
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import { expect, it, onTestFinished } from 'vitest'
import { startReplyTimer } from './reply-timer.ts'

const MS = 150

const blockFor = (ms: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)

/** Starts a timer. `passed` resolves when it calls its callback. */
function started() {
  const { promise: passed, resolve } = Promise.withResolvers<void>()
  let hasPassed = false
  const timer = startReplyTimer(MS, () => {
    hasPassed = true
    resolve()
  })
  // The timer does not keep the process alive.
  const alive = setInterval(() => {}, 1_000)
  onTestFinished(() => clearInterval(alive))
  return { timer, passed, hasPassed: () => hasPassed }
}

it('the timer calls its callback when its time has passed, and not before', async () => {
  const startedAt = performance.now()
  await started().passed
  expect(performance.now() - startedAt).toBeGreaterThanOrEqual(MS - 1)
})

it('a cancelled timer does not call its callback, even if its time has passed', async () => {
  const { timer, hasPassed } = started()
  blockFor(MS)
  await new Promise(setImmediate)
  timer.cancel()
  await started().passed
  expect(hasPassed()).toBe(false)
})

it('data that arrived while the event loop was blocked is read before the callback', async () => {
  const server = createServer()
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connect((server.address() as AddressInfo).port)
  const [socket] = await once(server, 'connection')
  onTestFinished(() => {
    client.destroy()
    socket.destroy()
    server.close()
  })
  const order: string[] = []
  const { passed } = started()
  client.on('data', () => order.push('read'))
  // The data reaches the other socket before the block.
  socket.write('x')
  blockFor(2 * MS)
  await passed
  order.push('passed')
  expect(order).toEqual(['read', 'passed'])
})

it('the last wait does not end while the event loop is blocked again and again', async () => {
  const { passed, hasPassed } = started()
  for (let block = 1; block <= 3; block++) {
    blockFor(1.5 * MS)
    await new Promise(setImmediate)
  }
  expect(hasPassed()).toBe(false)
  await passed
})
