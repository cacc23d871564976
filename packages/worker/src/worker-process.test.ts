// Tests worker processes with real signals: what drains, crashes and uncaught errors do to their tasks.
import { randomBytes, randomUUID } from 'node:crypto'
import type { WorkerConfig } from '@bullpen/config'
import type { CallOptions, TaskId } from '@bullpen/contract'
import { createTaskId } from '@bullpen/contract/internal'
import { newTask } from '@bullpen/engine/internal'
import { privateRedis, spawnProgram } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { slowTasks } from './ignores-abort-worker.fixture.ts'
import { openPatientBroker } from './patient-connections.fixture.ts'

const program = (name: string): string => new URL(name, import.meta.url).pathname

const run = (file: string, args?: readonly string[], env?: Readonly<Record<string, string>>) =>
  spawnProgram(program(file), args, env)

async function slowQueue(redisUrl = inject('redisUrl')) {
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const broker = openPatientBroker({ redisUrl, namespace, queues: slowTasks.queues })
  onTestFinished(async () => {
    await Promise.allSettled(broker.boardQueues.map((queue) => queue.obliterate({ force: true })))
    await broker.close()
  })
  await eventually(() => broker.ping().then(() => true))
  const workers: ReturnType<typeof run>[] = []
  /** How many attempts of a task have begun in their handler. */
  const begun = (id: TaskId): number =>
    workers
      .flatMap(({ output }) => output().split('\n'))
      .filter((line) => line.includes(id) && line.includes('"begun"')).length
  return {
    broker,
    async start(drainTimeout = '500ms', config: WorkerConfig = {}) {
      const args = [redisUrl, namespace, drainTimeout, JSON.stringify(config)]
      const worker = run('ignores-abort-worker.fixture.ts', args)
      workers.push(worker)
      await eventually(() => worker.output().includes('worker ready'))
      return worker
    },
    async enqueue(task: string, ms = 0, call: CallOptions = {}): Promise<TaskId> {
      const id = createTaskId('slow', Date.now(), randomBytes(10))
      await broker.enqueue({
        ...newTask(slowTasks.get(task), { ms }, call, { id, enqueuedAt: Date.now(), correlationId: undefined }),
        maxAttempts: 2,
      })
      return id
    },
    /** Resolves when the handler of the task's newest attempt has begun. Before that, a drain would release the task. */
    active: (id: TaskId) =>
      eventually(async () => {
        const task = await broker.find(id)
        return task?.status === 'active' && begun(id) === task.fencingToken
      }),
    settled: (id: TaskId) => broker.waitUntilFinished(id, AbortSignal.timeout(120_000)),
  }
}

/** The line that a worker logs when it has drained. */
function report(worker: ReturnType<typeof run>): Record<string, unknown> {
  const lines = worker
    .output()
    .split('\n')
    .filter((line) => line.includes('"msg":"drained"'))
  if (lines.length !== 1) throw new Error(`expected one line, got ${lines.length}`)
  return JSON.parse(lines[0] ?? '')
}

describe('a signalled worker', () => {
  it('finishes what it can, and exits with 0', async () => {
    const { start, enqueue, active, settled } = await slowQueue()
    const worker = await start('1m')
    const id = await enqueue('slow.gated')
    await active(id)
    worker.child.kill('SIGTERM')
    await eventually(() => worker.output().includes('draining'))
    worker.child.kill('SIGHUP')
    expect(await worker.exited).toBe(0)
    expect((await settled(id))?.status).toBe('completed')
    expect(report(worker)).toMatchObject({ finished: 1, requeued: 0, failed: 0, abandoned: 0, unconfirmed: 0 })
  })

  it('drains in the mode of its settings, and each pool in that of its own', async () => {
    const { start, enqueue, active, settled } = await slowQueue()
    const hard = await start('1h', { drainMode: 'hard' })
    const interrupted = await enqueue('slow.listening', 3_600_000)
    await active(interrupted)
    hard.child.kill('SIGTERM')
    expect(await hard.exited).toBe(0)
    // A fetch that was under way may return the requeued task once more, which counts as well.
    expect(report(hard)).toMatchObject({ finished: 0, failed: 0, abandoned: 0 })
    expect(report(hard)['requeued']).toBeGreaterThanOrEqual(1)

    const soft = await start('1ms', {
      drainMode: 'hard',
      poolSettings: { slow: { drainMode: 'soft', taskTimeout: '1h' } },
    })
    const id = await enqueue('slow.gated')
    await active(id)
    // Such a fetch also takes a fencing token, so the token does not say how often the handler has begun.
    const lines = () => soft.output().split('\n')
    await eventually(() => lines().some((line) => line.includes(interrupted) && line.includes('"begun"')))
    soft.child.kill('SIGTERM')
    await eventually(() => soft.output().includes('draining'))
    soft.child.kill('SIGHUP')
    expect(await settled(id)).toMatchObject({ status: 'completed', fencingToken: 1 })
    // A second signal ends the wait, which would otherwise last as long as the interrupted task.
    soft.child.kill('SIGTERM')
    expect(await soft.exited).toBe(0)
    expect(report(soft)).toMatchObject({ finished: 1, failed: 0, abandoned: 0 })
    expect(report(soft)['requeued']).toBeGreaterThanOrEqual(1)
  })

  it('logs in one line what became of its tasks, and how long the slowest one ran', async () => {
    const { start, enqueue, active, settled } = await slowQueue()
    const worker = await start('1h')
    const gated = await enqueue('slow.gated')
    await Promise.all([
      active(gated),
      enqueue('slow.listening', 60_000).then(active),
      enqueue('slow.short', 60_000).then(active),
    ])
    worker.child.kill('SIGTERM')
    await eventually(() => worker.output().includes('draining'))
    worker.child.kill('SIGHUP')
    expect(await settled(gated)).toMatchObject({ status: 'completed' })
    // Ends the wait for the two others, of which the second one then has its grace period of 500 ms.
    worker.child.kill('SIGTERM')
    expect(await worker.exited).toBe(1)
    expect(report(worker)).toMatchObject({ finished: 1, requeued: 1, failed: 0, abandoned: 1, unconfirmed: 0 })
    expect(report(worker)['slowestTaskMs']).toBeGreaterThanOrEqual(500)
  })

  it('exits with 1 while Redis is unreachable, and names the task whose result is unconfirmed', async () => {
    const redis = await privateRedis()
    await redis.start()
    const { start, enqueue, active } = await slowQueue(redis.url)
    const worker = await start()
    const id = await enqueue('slow.gated')
    await active(id)
    await redis.crash()
    worker.child.kill('SIGTERM')
    await eventually(() => worker.output().includes('draining'))
    worker.child.kill('SIGHUP')
    expect(await worker.exited).toBe(1)
    expect(worker.output()).toMatch(new RegExp(`"id":"${id}".*unconfirmed`))
    expect(report(worker)).toMatchObject({ finished: 0, abandoned: 0, unconfirmed: 1 })
    await redis.start()
  })

  it('requeues a task that obeys its signal; no attempt is counted, and another worker starts it', async () => {
    const { broker, start, enqueue, active } = await slowQueue()
    const worker = await start()
    const id = await enqueue('slow.listening', 60_000)
    await active(id)
    worker.child.kill('SIGTERM')
    expect(await worker.exited).toBe(0)
    expect(await broker.find(id)).toMatchObject({ status: 'waiting', fencingToken: 1, attemptsMade: 0 })
    await start()
    await active(id)
    expect((await broker.find(id))?.fencingToken).toBe(2)
  })

  it('requeues a long task that ignores its signal, without waiting for its handler; no attempt is counted', async () => {
    const { start, enqueue, active, settled } = await slowQueue()
    const worker = await start()
    const id = await enqueue('slow.deaf', 60_000)
    await active(id)
    worker.child.kill('SIGTERM')
    expect(await worker.exited).toBe(0)
    expect(report(worker)).toMatchObject({ finished: 0, requeued: 1 })
    await start()
    expect(await settled(id)).toMatchObject({
      status: 'completed',
      fencingToken: 2,
      attemptsMade: 1,
      attempts: [
        { state: 'TERMINATED_CTX_CLOSED', reason: 'drain' },
        { state: 'DONE_SUCCESS', fencingToken: 2 },
      ],
    })
  })

  it('abandons a short task that does not end, names it in the log and exits with 1; another worker recovers it', async () => {
    const { start, enqueue, active, settled } = await slowQueue()
    const worker = await start()
    const id = await enqueue('slow.short', 60_000)
    await active(id)
    worker.child.kill('SIGTERM')
    expect(await worker.exited).toBe(1)
    expect(report(worker)).toMatchObject({ finished: 0, abandoned: 1 })
    expect(worker.output()).toMatch(new RegExp(`"id":"${id}".*abandoned`))
    await start()
    expect(await settled(id)).toMatchObject({ status: 'completed', fencingToken: 2, output: { fencingToken: 2 } })
  })

  it('does not wait for the deadline of its drain after a second signal', async () => {
    const { start, enqueue, active } = await slowQueue()
    // Without the second signal the worker would wait for an hour.
    const worker = await start('1h')
    await active(await enqueue('slow.listening', 60_000))
    worker.child.kill('SIGTERM')
    await eventually(() => worker.output().includes('draining'))
    worker.child.kill('SIGTERM')
    expect(await worker.exited).toBe(0)
    expect(report(worker)).toMatchObject({ finished: 0, abandoned: 0 })
  })
})

describe('a killed worker', () => {
  it('loses nothing: another worker starts its task again, and the lost attempt is not counted', async () => {
    const { broker, start, enqueue, active } = await slowQueue()
    const worker = await start()
    const id = await enqueue('slow.listening', 60_000)
    await active(id)
    await start()
    worker.child.kill('SIGKILL')
    await eventually(async () => ((await broker.find(id))?.fencingToken ?? 0) === 2)
    expect((await broker.find(id))?.attemptsMade).toBe(0)
  })
})

describe('an error that escapes a handler', () => {
  it.each(['slow.escape-timer', 'slow.escape-promise', 'slow.escape-event'])(
    'by %s ends its attempt and nothing else',
    async (task) => {
      const { broker, start, enqueue, active, settled } = await slowQueue()
      const worker = await start()
      const innocent = await enqueue('slow.gated')
      await active(innocent)
      const id = await enqueue(task, 60_000)
      const attempt = await eventually(async () => (await broker.find(id))?.attempts[0])
      expect(attempt).toMatchObject({ state: 'RECOVER_ERR', reason: 'escaped_error', message: 'Error: escaped' })
      worker.child.kill('SIGHUP')
      expect(await settled(innocent)).toMatchObject({ status: 'completed', fencingToken: 1 })
      worker.child.kill('SIGTERM')
      expect(await worker.exited).toBe(0)
    },
  )

  it('by a listener of its signal leaves the worker and its other tasks alone', async () => {
    const { broker, start, enqueue, active, settled } = await slowQueue()
    const worker = await start()
    const innocent = await enqueue('slow.gated')
    await active(innocent)
    const id = await enqueue('slow.escape-abort', 60_000)
    const attempt = await eventually(async () => (await broker.find(id))?.attempts[0])
    expect(attempt).toMatchObject({ state: 'TERMINATED_TIMEOUT', reason: 'run_timeout' })
    worker.child.kill('SIGHUP')
    expect(await settled(innocent)).toMatchObject({ status: 'completed', fencingToken: 1 })
    expect(worker.child.exitCode).toBeNull()
  })

  it('outside any attempt drains the worker at once and ends it with 70', async () => {
    const { broker, start, enqueue, active } = await slowQueue()
    const worker = await start()
    const id = await enqueue('slow.listening', 60_000)
    await active(id)
    worker.child.kill('SIGUSR2')
    expect(await worker.exited).toBe(70)
    expect(worker.output()).toContain('uncaught error outside any attempt')
    expect(report(worker)).toMatchObject({ requeued: 0, abandoned: 1 })
    expect(worker.output()).toMatch(new RegExp(`"id":"${id}".*abandoned`))
    await start()
    const attempt = await eventually(async () => (await broker.find(id))?.attempts[0])
    expect(attempt).toMatchObject({ state: 'RECOVER_ERR', reason: 'process_lost', counted: false })
    expect(await broker.find(id)).toMatchObject({ attemptsMade: 0 })
  })

  it('outside any attempt is a death: the task that causes it runs in quarantine, and becomes poison after too many deaths', async () => {
    const { start, enqueue, active, settled } = await slowQueue()
    // Two deaths end the task, and nothing else may be running when the second one happens.
    const config = { maxDeaths: 2, quarantineProcesses: 0 }
    const first = await start('1m', config)
    const innocent = await enqueue('slow.deaf', 60_000)
    await active(innocent)
    const id = await enqueue('slow.escape-batch', 60_000)
    expect(await first.exited).toBe(70)
    const second = await start('1m', config)
    const third = await start('1m', config)
    expect(await Promise.race([second.exited, third.exited])).toBe(70)
    expect(await settled(id)).toMatchObject({
      status: 'dead',
      attempts: [{ reason: 'process_lost' }, { reason: 'process_lost' }, { reason: 'poison' }],
    })
    expect(await settled(innocent)).toMatchObject({ status: 'completed' })
    expect([second, third].filter(({ child }) => child.exitCode !== null)).toHaveLength(1)
  })
})

it('a task that kills its process kills one worker, then child processes of another, until it is poison', async () => {
  const { start, enqueue, active, settled } = await slowQueue()
  const first = await start()
  const id = await enqueue('isolated.deadly')
  await first.exited
  const second = await start()
  const innocent = await enqueue('slow.gated')
  await active(innocent)
  expect(await settled(id)).toMatchObject({
    status: 'dead',
    attempts: [
      { reason: 'process_lost' },
      { reason: 'isolate_died' },
      { reason: 'isolate_died' },
      { reason: 'poison', message: expect.stringContaining('died 3 times') },
    ],
  })
  second.child.kill('SIGHUP')
  expect(await settled(innocent)).toMatchObject({ status: 'completed', fencingToken: 1 })
})

describe('an isolated task', () => {
  it.each(['isolated.thread', 'isolated.process'])(
    '%s that loops ends at its timeout while fifty others complete',
    async (task) => {
      const { broker, start, enqueue, settled } = await slowQueue()
      const worker = await start()
      // Warms an isolate: starting one may take longer than the timeout on a busy machine.
      expect(await settled(await enqueue(task, 0, { timeout: '1m' }))).toMatchObject({
        status: 'completed',
        output: { opened: 1 },
      })
      const looping = await enqueue(task, -1)
      const others = await Promise.all(Array.from({ length: 50 }, () => enqueue('slow.deaf', 5)))
      for (const id of others) expect(await settled(id)).toMatchObject({ status: 'completed', fencingToken: 1 })
      const ended = await settled(looping)
      expect(ended?.status).toBe('dead')
      expect(ended?.attempts[0]).toMatchObject({ state: 'TERMINATED_TIMEOUT', reason: 'run_timeout' })
      worker.child.kill('SIGTERM')
      expect(await worker.exited).toBe(0)
      expect((await broker.counts('slow')).active).toBe(0)
    },
  )
})
