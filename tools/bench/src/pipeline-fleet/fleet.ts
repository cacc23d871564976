// Runs the pipeline of the benchmark `pipeline-fleet` on worker processes.
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { join } from 'node:path'
import { openBroker } from '@bullpen/bullmq'
import type { Log } from '@bullpen/contract'
import { createRunId, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import { planRun } from '@bullpen/engine/internal'
import { untilReachable } from '../measuring/reachable.ts'
import { catalogue, type Load, tasks } from './work.ts'

export interface Fleet {
  /** Resolves when the run has ended. */
  run(load: Load): Promise<void>
  /** Kills the workers, and deletes what the fleet has stored. */
  close(): Promise<void>
}

const silent: Log = { debug() {}, info() {}, warn() {}, error: console.error }

/** Starts the workers, and resolves when they are ready. */
export async function openFleet(redisUrl: string, workers: number): Promise<Fleet> {
  const namespace = `bench-${randomUUID().slice(0, 8)}`
  const broker = openBroker({ redisUrl, namespace, queues: catalogue.queues, sizeLimit: 65_536, log: silent })
  await untilReachable(broker)
  const children = await Promise.all(Array.from({ length: workers }, () => startWorker(redisUrl, namespace)))
  return {
    async run(input) {
      const now = Date.now()
      const random = randomBytes(ID_RANDOM_BYTES)
      const id = createRunId(now, random)
      await broker.runs.start(planRun(tasks, { id, by: 'bench', input, random, now, correlationId: undefined }))
      const run = await broker.runs.waitUntilEnded(id, new AbortController().signal)
      if (run?.ended?.result !== 'completed' || run.results !== input.items) {
        throw new Error(`the run has not completed all items: ${JSON.stringify(run)}`)
      }
    },
    async close() {
      for (const child of children) {
        const exited = once(child, 'exit')
        child.kill('SIGKILL')
        await exited
      }
      await Promise.all(broker.boardQueues.map((queue) => queue.obliterate({ force: true })))
      await broker.close()
    },
  }
}

async function startWorker(redisUrl: string, namespace: string): Promise<ChildProcess> {
  const program = join(import.meta.dirname, 'fleet-worker.ts')
  const child = spawn(process.execPath, [program, redisUrl, namespace], { stdio: ['ignore', 'pipe', 'inherit'] })
  await once(child.stdout, 'data')
  child.stdout.resume()
  return child
}
