// Tests worker processes that are controlled by remote commands over a real Redis.
import { spawn } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { TaskId } from '@bullpen/contract'
import { type CommandSpec, createTaskId } from '@bullpen/contract/internal'
import { type CommandRecord, newTask } from '@bullpen/engine/internal'
import { programEnv } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { slowTasks } from '../ignores-abort-worker.fixture.ts'
import { openPatientBroker, openPatientFleet } from '../patient-connections.fixture.ts'

const FIXTURE = new URL('../ignores-abort-worker.fixture.ts', import.meta.url).pathname

async function slowFleet() {
  const [redisUrl, namespace] = [inject('redisUrl'), `t-${randomUUID().slice(0, 12)}`]
  const broker = openPatientBroker({
    redisUrl,
    namespace,
    queues: slowTasks.queues,
    admission: 'open',
  })
  const fleet = openPatientFleet({ redisUrl, namespace, queues: slowTasks.queues })
  onTestFinished(async () => {
    await Promise.allSettled(broker.boardQueues.map((queue) => queue.obliterate({ force: true })))
    await broker.close()
    await fleet.close()
  })
  await eventually(() => broker.ping().then(() => true))
  // It rejects until its own connection is ready.
  await eventually(() => fleet.workers().then(() => true))
  const known = () => fleet.workers().then(({ workers }) => workers)
  return {
    broker,
    fleet,
    /** A worker, once it is registered. */
    async start() {
      const before = new Set((await known()).map(({ worker }) => worker))
      const child = spawn(process.execPath, [FIXTURE, redisUrl, namespace], { env: programEnv() })
      let output = ''
      child.stdout.on('data', (chunk) => (output += chunk))
      child.stderr.on('data', (chunk) => (output += chunk))
      const exited = new Promise<number | null>((resolve) => child.on('exit', (code) => resolve(code)))
      onTestFinished(() => void child.kill('SIGKILL'))
      await eventually(() => output.includes('worker ready'))
      const found = await eventually(async () => (await known()).find((each) => !before.has(each.worker)))
      const status = async () => (await known()).find((each) => each.worker === found.worker)
      return {
        id: found.worker,
        child,
        exited,
        output: () => output,
        /** Resolves when the handler runs. A drain releases a task that is only fetched. */
        begun: (id: TaskId) => eventually(() => new RegExp(`"id":"${id}".*"msg":"begun"`).test(output)),
        status,
        pool: async () => (await status())?.pools.find(({ queue }) => queue === 'slow'),
      }
    },
    async send(spec: CommandSpec): Promise<CommandRecord> {
      const { id } = await fleet.send({ id: randomUUID(), spec, by: 'a test' })
      const record = await fleet.awaitResponses(id, AbortSignal.timeout(120_000))
      if (record === undefined) throw new Error('the command was not found')
      return record
    },
    async enqueue(task: string, ms = 0): Promise<TaskId> {
      const id = createTaskId('slow', Date.now(), randomBytes(10))
      await broker.enqueue(
        newTask(slowTasks.get(task), { ms }, {}, { id, enqueuedAt: Date.now(), correlationId: undefined }),
      )
      return id
    },
    settled: (id: TaskId) => broker.waitUntilFinished(id, AbortSignal.timeout(120_000)),
  }
}

const of = (spec: CommandSpec): CommandSpec => spec

describe('a remote command', () => {
  it('finds a worker in the registry with its pools and slots, until the worker has ended', async () => {
    const { start, enqueue, fleet } = await slowFleet()
    const worker = await start()
    const before = Date.now()
    const id = await enqueue('slow.listening', 30_000)
    await worker.begun(id)
    const status = await eventually(async () => {
      const found = await worker.status()
      return found?.pools.some(({ busy }) => busy === 1) && found
    })
    expect(status).toMatchObject({ pid: worker.child.pid, draining: false, drainTimeoutMs: 500, graceMs: 500 })
    expect(Math.abs(status.skewMs)).toBeLessThan(60_000)
    expect(status.pools).toMatchObject([{ queue: 'slow', state: 'BG_RUNNING', concurrency: 4, paused: false }])
    const task = status.pools[0]?.slots.find((each) => each.task !== undefined)?.task
    expect(task).toMatchObject({ id, task: 'slow.listening', fencingToken: 1 })
    // Its timeout is a minute.
    expect((task?.timeoutAt ?? 0) - before).toBeGreaterThan(59_000)
    worker.child.kill('SIGTERM')
    expect(await worker.exited).toBe(0)
    expect((await fleet.workers()).workers).toEqual([])
  })

  it('pauses, resumes and resizes a pool, and stops a slot', async () => {
    const { start, enqueue, send, settled, broker } = await slowFleet()
    const worker = await start()
    const pausing = await send(of({ action: 'pause', worker: worker.id, queue: 'slow' }))
    expect(pausing.responses).toMatchObject([{ worker: worker.id, outcome: 'done', detail: 'paused: slow' }])
    expect(await worker.pool()).toMatchObject({ paused: true, notReady: 'paused' })
    const ids = [await enqueue('slow.deaf', 10), await enqueue('slow.deaf', 10)]
    await send(of({ action: 'resize', queue: 'slow', concurrency: 1 }))
    expect(await worker.pool()).toMatchObject({ concurrency: 1 })
    expect((await broker.counts('slow')).completed).toBe(0)
    await send(of({ action: 'resume', worker: worker.id }))
    for (const id of ids) expect(await settled(id)).toMatchObject({ status: 'completed', fencingToken: 1 })
    const long = await enqueue('slow.listening', 30_000)
    await worker.begun(long)
    const busy = await eventually(async () => (await worker.pool())?.slots.find(({ task }) => task?.id === long))
    const spec = of({ action: 'stop', worker: worker.id, queue: 'slow', slot: busy.slot, how: 'hard' })
    expect((await send(spec)).responses).toMatchObject([{ outcome: 'done' }])
    expect((await worker.pool())?.concurrency).toBe(0)
    expect(await eventually(async () => (await broker.find(long))?.status === 'waiting')).toBe(true)
    expect(worker.output()).toMatch(/"by":"a test".*"outcome":"done".*"msg":"command executed"/)
  })

  it('changes the level of the log: of lines about short tasks, which are otherwise only summarised', async () => {
    const { start, enqueue, send, settled } = await slowFleet()
    const worker = await start()
    const run = async (): Promise<TaskId> => {
      const id = await enqueue('slow.short')
      expect(await settled(id)).toMatchObject({ status: 'completed' })
      return id
    }
    expect((await send(of({ action: 'log_level', level: 'debug', for: '1h' }))).responses).toMatchObject([
      { worker: worker.id, outcome: 'done', detail: 'the log level is debug' },
    ])
    const verbose = await run()
    await send(of({ action: 'log_level', level: 'configured', worker: worker.id }))
    const quiet = await run()
    worker.child.kill('SIGTERM')
    expect(await worker.exited).toBe(0)
    const about = (text: string) =>
      worker
        .output()
        .split('\n')
        .filter((line) => line.includes(text))
        .map((line) => JSON.parse(line))
    const messages = (id: TaskId) => about(id).map(({ level, msg }) => `${level} ${msg}`)
    expect(messages(verbose)).toEqual(['debug attempt started', 'info begun', 'debug task completed'])
    expect(messages(quiet)).toEqual(['info begun'])
    expect(about('attempts of a short task ended')).toMatchObject([{ task: 'slow.short', verdicts: { completed: 2 } }])
  })

  it('drains one pool; resuming it starts another in its place', async () => {
    const { start, enqueue, send, settled } = await slowFleet()
    const worker = await start()
    const running = await enqueue('slow.gated')
    await worker.begun(running)
    await send(of({ action: 'drain', worker: worker.id, queue: 'slow', mode: 'soft' }))
    expect(await worker.pool()).toMatchObject({ notReady: 'drained by command' })
    worker.child.kill('SIGHUP')
    await eventually(async () => (await worker.pool())?.state === 'SHUTDOWN')
    expect(await settled(running)).toMatchObject({ status: 'completed', fencingToken: 1 })
    expect(worker.child.exitCode).toBeNull()
    const waiting = await enqueue('slow.deaf', 10)
    await send(of({ action: 'resume', worker: worker.id, queue: 'slow' }))
    expect(await settled(waiting)).toMatchObject({ status: 'completed', fencingToken: 1 })
  })

  it('drains a worker softly without a deadline, and a signal sets one', async () => {
    const { start, enqueue, send, broker } = await slowFleet()
    const worker = await start()
    const [short, long] = [await enqueue('slow.gated'), await enqueue('slow.listening', 60_000)]
    await Promise.all([worker.begun(short), worker.begun(long)])
    expect((await send(of({ action: 'drain', worker: worker.id, mode: 'soft' }))).responses).toMatchObject([
      { outcome: 'done', detail: 'the worker is draining' },
    ])
    // Longer than the worker's own drain timeout of 500 ms.
    await sleep(600)
    worker.child.kill('SIGHUP')
    await eventually(async () => (await broker.find(short))?.status === 'completed')
    await eventually(async () => (await worker.status())?.draining)
    expect((await broker.find(long))?.status).toBe('active')
    worker.child.kill('SIGTERM')
    expect(await worker.exited).toBe(0)
    expect(await broker.find(long)).toMatchObject({ status: 'waiting', attemptsMade: 0 })
    expect(worker.output()).toMatch(/"finished":1,"requeued":1.*"msg":"drained"/)
  })

  it('drains a worker, which exits with 1 when it abandoned a task', async () => {
    const { start, enqueue, send } = await slowFleet()
    const worker = await start()
    const id = await enqueue('slow.short', 60_000)
    await worker.begun(id)
    await send(of({ action: 'drain', worker: worker.id, mode: 'hard' }))
    expect(await worker.exited).toBe(1)
    expect(worker.output()).toMatch(new RegExp(`"id":"${id}".*abandoned`))
  })
})

describe('the drain of a whole queue', () => {
  it('holds a worker that starts meanwhile, until it is lifted', async () => {
    const { start, enqueue, send, settled, broker } = await slowFleet()
    const first = await start()
    await send(of({ action: 'drain', queue: 'slow', mode: 'soft_timeout' }))
    await eventually(async () => (await first.pool())?.state === 'SHUTDOWN')
    const second = await start()
    const id = await enqueue('slow.deaf', 10)
    await eventually(async () => (await second.pool())?.notReady === 'the whole queue is draining')
    expect([(await second.pool())?.state, (await broker.find(id))?.status]).toEqual(['NEW', 'waiting'])
    await send(of({ action: 'resume', queue: 'slow' }))
    expect(await settled(id)).toMatchObject({ status: 'completed', fencingToken: 1 })
    for (const { pool } of [first, second]) await eventually(async () => (await pool())?.state === 'BG_RUNNING')
  })

  it('with mode light finishes every accepted task before the pools end', async () => {
    const { start, enqueue, send, broker } = await slowFleet()
    const worker = await start()
    const ids = await Promise.all(Array.from({ length: 12 }, () => enqueue('slow.deaf', 400)))
    await send(of({ action: 'drain', queue: 'slow', mode: 'light' }))
    await eventually(async () => (await worker.pool())?.state === 'SHUTDOWN')
    for (const id of ids) expect(await broker.find(id)).toMatchObject({ status: 'completed', fencingToken: 1 })
  })
})
