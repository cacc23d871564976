// A process with a pool that says each start of a task on a line of its own.
import { writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineCatalogue, defineHandler, defineTask, type Log } from '@bullpen/contract'
import { createPool, createRegistry, DEFAULT_TIMEOUTS } from '@bullpen/engine/internal'
import { attemptContext, sha256, systemClock } from '@bullpen/engine/node'
import { z } from 'zod'
import { openConsumer } from '../consumer.ts'

const schemas = { queue: 'swarm', kind: 'short', input: z.object({}), output: z.unknown() } as const
export const hit = defineTask({ name: 'swarm.hit', ...schemas })
export const other = defineTask({ name: 'swarm.other', ...schemas })

if (process.argv[1] === import.meta.filename) {
  const [redisUrl = '', namespace = ''] = process.argv.slice(2)
  const log: Log = { debug() {}, info() {}, warn() {}, error() {} }
  // At once: a process that is stopped or killed has said what it has begun.
  const begin = async ({ name, id }: { readonly name: string; readonly id: string }): Promise<void> => {
    writeSync(1, `${name} ${id}\n`)
    await sleep(5)
  }
  const pool = createPool({
    queue: 'swarm',
    concurrency: 4,
    maxStuckHandlers: 10,
    graceMs: 500,
    consumer: (work, fed) =>
      openConsumer(
        { queue: 'swarm', namespace, redisUrl, concurrency: 4, completedRetentionMs: 60_000, log },
        work,
        fed,
      ),
    host: {
      registry: createRegistry(
        defineCatalogue(hit, other),
        {
          'swarm.hit': defineHandler(hit, import.meta.url, begin),
          'swarm.other': defineHandler(other, import.meta.url, begin),
        },
        { timeouts: DEFAULT_TIMEOUTS },
      ),
      context: attemptContext(),
      clock: systemClock,
      random: Math.random,
      sink: () => {},
      enqueue: () => Promise.reject(new Error('it enqueues nothing')),
      sha256,
      maxOutputBytes: 1_000,
      worker: `test:${process.pid}`,
      resources: {},
      logFor: () => log,
    },
  })
  await pool.start()
}
