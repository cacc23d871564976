// A process with a pool whose locks are short. One handler blocks the event loop, and another one waits for its signal.
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineCatalogue, defineHandler, defineTask, type Log } from '@bullpen/contract'
import { realTimePool } from '@bullpen/testkit/internal'
import { z } from 'zod'
import { openConsumer } from '../consumer.ts'
import { openLockRenewer } from './lock-renewer.ts'

const schemas = { input: z.object({ ms: z.int() }), output: z.object({ fencingToken: z.int(), pid: z.int() }) }
/** The first attempt blocks the event loop, and then waits a while for its signal. Others end at once. */
export const blocker = defineTask({ name: 'lock.blocker', queue: 'lock', timeout: '1m', ...schemas })
/** The first attempt waits; others end at once. */
export const neighbour = defineTask({ name: 'lock.neighbour', queue: 'lock', timeout: '1m', ...schemas })
const catalogue = defineCatalogue(blocker, neighbour)

export interface Said {
  readonly said: 'loaded' | 'ready' | 'started' | 'signalled' | 'warned' | 'thread ended'
  readonly id?: string
  readonly fencingToken?: number
  readonly reason?: string
}

const LOCKS = { lockMs: 2_000, renewalMs: 200 }

const say = (line: Said): void => console.log(JSON.stringify(line))

/** Blocks the event loop without using the processor. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)), 0, 0, ms)
}

if (process.argv[1] === import.meta.filename) {
  const [redisUrl = '', namespace = '', eventLoopStallLimitMs = ''] = process.argv.slice(2)
  const onThreadEnded = (): void => say({ said: 'thread ended' })
  const { pid } = process
  const log: Log = {
    debug() {},
    info() {},
    warn: (_, message) => say({ said: 'warned', reason: message }),
    error() {},
  }
  const handlers = {
    'lock.blocker': defineHandler(blocker, import.meta.url, async ({ id, input, fencingToken, signal }) => {
      say({ said: 'started', id, fencingToken })
      if (fencingToken > 1) return { fencingToken, pid }
      signal.addEventListener('abort', () => say({ said: 'signalled', id, reason: signal.reason.message }))
      // By then the line above is printed, and the neighbour has started.
      await sleep(300)
      block(input.ms)
      await sleep(300)
      return { fencingToken, pid }
    }),
    'lock.neighbour': defineHandler(neighbour, import.meta.url, async ({ id, input, fencingToken, signal }) => {
      say({ said: 'started', id, fencingToken })
      if (fencingToken > 1) return { fencingToken, pid }
      signal.addEventListener('abort', () => say({ said: 'signalled', id, reason: signal.reason.message }))
      await sleep(input.ms, undefined, { signal })
      return { fencingToken, pid }
    }),
  }
  const pool = realTimePool({
    queue: 'lock',
    concurrency: 2,
    catalogue,
    handlers,
    logFor: () => log,
    consumer: (runTask, host) =>
      openConsumer(
        {
          queue: 'lock',
          namespace,
          redisUrl,
          concurrency: 2,
          retention: { completed: { ageMs: 60_000 } },
          log,
          eventLoopStallLimitMs: eventLoopStallLimitMs === '' ? undefined : Number(eventLoopStallLimitMs),
          locks: LOCKS,
          onLockThreadEnded: onThreadEnded,
        },
        runTask,
        host,
      ),
  })
  if (process.argv.includes('two-renewers')) {
    const other = { base: '{lock.other}:', eventLoopStallLimitMs: undefined, slots: 1, onThreadEnded }
    openLockRenewer({ ...LOCKS, ...other, redisUrl, log })
  }
  process.once('SIGTERM', () => void pool.drain({ drainMs: 0, graceMs: 500 }))
  // On a busy machine, loading takes longer than a handler may block, so a test starts the pool when it needs the pool.
  say({ said: 'loaded' })
  await once(process.stdin, 'data')
  process.stdin.destroy()
  await pool.start()
  say({ said: 'ready' })
}
