// One worker process for memory hogs and modest tasks, in its own namespace.
import { spawn } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import type { TaskId, TaskRecord } from '@bullpen/contract'
import { createTaskId } from '@bullpen/contract/internal'
import { newTask } from '@bullpen/engine/internal'
import { amount, processTree, programEnv } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { inject } from 'vitest'
import { memoryHogTasks } from './memory-hog.fixture.ts'
import { openPatientBroker } from './patient-connections.fixture.ts'

export interface Wanted {
  readonly task: string
  readonly n: number
  readonly ms?: number
}

/** How long all tasks of one `run` may take, in ms. */
export const PATIENCE = amount({ small: 3 * 60_000, full: 12 * 60_000 })

export type MemoryHogWorker = Awaited<ReturnType<typeof startMemoryHogWorker>>

/**
 * Calls `look` until it succeeds. The hogs may keep the machine so busy that commands to Redis time out, which is not what
 * these tests check.
 */
const patiently = <T>(look: () => Promise<T>) => eventually(look, PATIENCE)

/** Starts the worker process and resolves when it is ready. Otherwise, the process is killed. */
export async function startMemoryHogWorker() {
  const [redisUrl, namespace] = [inject('redisUrl'), `t-${randomUUID().slice(0, 12)}`]
  const broker = openPatientBroker({ redisUrl, namespace, queues: memoryHogTasks.queues })
  const program = new URL('./memory-hog-worker.fixture.ts', import.meta.url).pathname
  const worker = spawn(process.execPath, [program, redisUrl, namespace], { env: programEnv() })
  const exited = new Promise<number | null>((resolve) => worker.once('exit', (code) => resolve(code)))
  let output = ''
  for (const stream of [worker.stdout, worker.stderr]) stream.on('data', (chunk) => (output += chunk))
  async function close() {
    worker.kill('SIGKILL')
    await Promise.allSettled(broker.boardQueues.map((queue) => queue.obliterate({ force: true })))
    await broker.close()
  }
  const url = await eventually(() => /"url":"([^"]+)".*worker ready/.exec(output)?.[1]).catch(
    async (error: unknown) => {
      await close()
      throw error
    },
  )

  async function enqueue({ task, ...input }: Wanted): Promise<TaskId> {
    const id = createTaskId('hogs', Date.now(), randomBytes(10))
    const origin = { id, enqueuedAt: Date.now(), correlationId: undefined }
    const wanted = newTask(memoryHogTasks.get(task), input, {}, origin)
    await patiently(() => broker.enqueue(wanted).then(() => id))
    return id
  }

  return {
    exited,
    output: () => output,
    isAlive: () => worker.exitCode === null && worker.signalCode === null,
    readiness: () => fetch(`${url}/readyz`).then(({ status }) => status),
    resources: () => processTree(worker.pid ?? 0),
    drain: () => void worker.kill('SIGTERM'),

    /** Enqueues the tasks in this order, and resolves when all of them have ended. */
    async run(tasks: readonly Wanted[]): Promise<readonly TaskRecord[]> {
      const patience = AbortSignal.timeout(PATIENCE)
      const ids: TaskId[] = []
      for (const task of tasks) ids.push(await enqueue(task))
      const records: TaskRecord[] = []
      for (const id of ids) records.push(await patiently(() => broker.waitUntilFinished(id, patience)))
      return records
    },

    close,
  }
}
