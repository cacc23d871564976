// Tests that nothing which an inline handler throws, returns or does to its process ends its worker or spoils the next task.
import { randomBytes, randomUUID } from 'node:crypto'
import type { CallOptions, TaskDefinition } from '@bullpen/contract'
import { createTaskId } from '@bullpen/contract/internal'
import { newTask } from '@bullpen/engine/internal'
import { spawnProgram } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { expect, inject, it, onTestFinished } from 'vitest'
import { ACTS, actTask, actTasks, checkTask, DRAINS, LOST_NAMES } from './inline-acts.fixture.ts'
import { openPatientBroker } from './patient-connections.fixture.ts'

/** Starts a worker, and returns a function that runs a task in it. */
async function startWorker() {
  const [redisUrl, namespace] = [inject('redisUrl'), `t-${randomUUID().slice(0, 12)}`]
  const broker = openPatientBroker({ redisUrl, namespace, queues: actTasks.queues })
  onTestFinished(async () => {
    await Promise.allSettled(broker.boardQueues.map((queue) => queue.obliterate({ force: true })))
    await broker.close()
  })
  await eventually(() => broker.ping().then(() => true))
  const worker = spawnProgram(new URL('inline-acts.fixture.ts', import.meta.url).pathname, [redisUrl, namespace])
  await eventually(() => worker.output().includes('worker ready'))
  const enqueue = async (task: TaskDefinition, input: unknown, call: CallOptions = {}) => {
    const id = createTaskId('acts', Date.now(), randomBytes(10))
    await broker.enqueue(newTask(task, input, call, { id, enqueuedAt: Date.now(), correlationId: undefined }))
    return id
  }
  const run = async (...task: Parameters<typeof enqueue>) =>
    await broker.waitUntilFinished(await enqueue(...task), AbortSignal.timeout(120_000))
  return { worker, enqueue, run }
}

it('a worker survives every act of an inline handler, and runs the next task', async () => {
  const { worker, run } = await startWorker()
  const ends: Record<string, unknown> = {}
  for (const [name, { timeout }] of Object.entries(ACTS)) {
    const ended = await run(actTask, name, timeout && { timeout })
    const next = await run(checkTask, null)
    ends[name] = { endsAs: ended?.attempts.at(-1)?.reason ?? ended?.status, next: next?.output }
  }
  const expected = Object.entries(ACTS).map(([name, { endsAs = 'completed' }]) => [name, { endsAs, next: 'checked' }])
  expect(ends).toEqual(Object.fromEntries(expected))
  worker.child.kill('SIGTERM')
  expect(await worker.exited).toBe(0)
})

it.each(LOST_NAMES)(
  'a worker drains and exits with code 70 if an inline handler replaces %s for good',
  async (name) => {
    const { worker, enqueue } = await startWorker()
    await enqueue(actTask, name)
    expect(await worker.exited).toBe(70)
    if (name in DRAINS) expect(worker.output().includes('"drained"')).toBe(DRAINS[name])
  },
)
