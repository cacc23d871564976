// A process with a pool that prints a line for each task that it starts. On SIGUSR2, it prints a line and stops (SIGSTOP).
import { writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineCatalogue, defineHandler, defineTask, type Log } from '@bullpen/contract'
import { realTimePool } from '@bullpen/testkit/internal'
import { z } from 'zod'
import { openConsumer } from '../consumer.ts'

const schemas = { queue: 'swarm', kind: 'short', input: z.object({}), output: z.unknown() } as const
export const hit = defineTask({ name: 'swarm.hit', ...schemas })
export const other = defineTask({ name: 'swarm.other', ...schemas })

if (process.argv[1] === import.meta.filename) {
  const [redisUrl = '', namespace = ''] = process.argv.slice(2)
  const log: Log = { debug() {}, info() {}, warn() {}, error() {} }
  // Writes synchronously, so that a process that is stopped or killed has printed every task that it started.
  const begin = async ({ name, id }: { readonly name: string; readonly id: string }): Promise<void> => {
    writeSync(1, `${name} ${id}\n`)
    await sleep(5)
  }
  const pool = realTimePool({
    queue: 'swarm',
    concurrency: 4,
    catalogue: defineCatalogue(hit, other),
    handlers: {
      'swarm.hit': defineHandler(hit, import.meta.url, begin),
      'swarm.other': defineHandler(other, import.meta.url, begin),
    },
    consumer: (runTask, host) =>
      openConsumer(
        { queue: 'swarm', namespace, redisUrl, concurrency: 4, retention: { completed: { ageMs: 60_000 } }, log },
        runTask,
        host,
      ),
  })
  // The process stops between two turns of its event loop. The check of the cancel rules and the start of the handler are in one
  // turn, so no task has passed the check without being started.
  process.on('SIGUSR2', () => {
    writeSync(1, 'stopping\n')
    process.kill(process.pid, 'SIGSTOP')
  })
  await pool.start()
}
