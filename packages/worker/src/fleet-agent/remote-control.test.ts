// Workers that are steered from outside, over a real Redis: what becomes of their pools, their tasks and themselves.
import { spawn } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { openBroker } from '@bullpen/bullmq'
import { openFleet } from '@bullpen/bullmq/internal'
import type { Log, TaskId } from '@bullpen/contract'
import { type CommandSpec, createTaskId } from '@bullpen/contract/internal'
import { type CommandRecord, newTask } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { slowTasks } from '../ignores-abort-worker.fixture.ts'

const silent: Log = { debug() {}, info() {}, warn() {}, error() {} }
const FIXTURE = new URL('../ignores-abort-worker.fixture.ts', import.meta.url).pathname

async function slowFleet() {
  const [redisUrl, namespace] = [inject('redisUrl'), `t-${randomUUID().slice(0, 12)}`]
  const broker = openBroker({
    redisUrl,
    namespace,
    queues: slowTasks.queues,
    sizeLimit: 10_000,
    admission: 'open',
    log: silent,
  })
  const fleet = openFleet({ redisUrl, namespace, queues: slowTasks.queues, log: silent })
  onTestFinished(async () => {
    await Promise.allSettled(broker.boardQueues.map((queue) => queue.obliterate({ force: true })))
    await broker.close()
    await fleet.close()
  })
  await eventually(() => broker.ping().then(() => true))
  // It has a connection of its own, and rejects until that is there.
  await eventually(() => fleet.workers().then(() => true))
  const known = () => fleet.workers().then(({ workers }) => workers)
  return {
    broker,
    fleet,
    /** A worker, once the fleet knows it. */
    async start() {
      const before = new Set((await known()).map(({ worker }) => worker))
      const child = spawn(process.execPath, [FIXTURE, redisUrl, namespace], { env: { PATH: process.env['PATH'] } })
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
        status,
        pool: async () => (await status())?.pools.find(({ queue }) => queue === 'slow'),
      }
    },
    async send(order: CommandSpec): Promise<CommandRecord> {
      const { id } = await fleet.send({ id: randomUUID(), spec: order, by: 'a test' })
      const record = await fleet.answered(id, AbortSignal.timeout(10_000))
      if (record === undefined) throw new Error('the command is not there')
      return record
    },
    async enqueue(task: string, ms: number): Promise<TaskId> {
      const id = createTaskId('slow', Date.now(), randomBytes(10))
      await broker.enqueue(
        newTask(slowTasks.get(task), { ms }, {}, { id, enqueuedAt: Date.now(), correlationId: undefined }),
      )
      return id
    },
    active: (id: TaskId) => eventually(async () => (await broker.find(id))?.status === 'active'),
    settled: (id: TaskId) => broker.waitUntilFinished(id, AbortSignal.timeout(15_000)),
  }
}

const of = (order: CommandSpec): CommandSpec => order

describe('a worker', () => {
  it('is known to the fleet with its pools and slots, and no more once it has ended', async () => {
    const { start, enqueue, active, fleet } = await slowFleet()
    const slot = await start()
    const id = await enqueue('slow.listening', 30_000)
    await active(id)
    const status = await eventually(async () => {
      const found = await slot.status()
      return found?.pools.some(({ busy }) => busy === 1) && found
    })
    expect(status).toMatchObject({ pid: slot.child.pid, draining: false, drainTimeoutMs: 500, graceMs: 500 })
    expect(Math.abs(status.skewMs)).toBeLessThan(1_000)
    expect(status.pools).toMatchObject([{ queue: 'slow', state: 'BG_RUNNING', concurrency: 4, paused: false }])
    const task = status.pools[0]?.slots.find((each) => each.task !== undefined)?.task
    expect(task).toMatchObject({ id, task: 'slow.listening', fencingToken: 1 })
    expect((task?.timeoutAt ?? 0) - Date.now()).toBeGreaterThan(50_000)
    slot.child.kill('SIGTERM')
    expect(await slot.exited).toBe(0)
    expect((await fleet.workers()).workers).toEqual([])
  })

  it('is paused, resumed and resized', async () => {
    const { start, enqueue, send, settled, broker, active } = await slowFleet()
    const slot = await start()
    const pausing = await send(of({ action: 'pause', worker: slot.id, queue: 'slow' }))
    expect(pausing.answers).toMatchObject([{ worker: slot.id, outcome: 'done', detail: 'paused: slow' }])
    expect(await slot.pool()).toMatchObject({ paused: true, notReady: 'paused' })
    const ids = [await enqueue('slow.deaf', 10), await enqueue('slow.deaf', 10)]
    await send(of({ action: 'resize', queue: 'slow', concurrency: 1 }))
    expect(await slot.pool()).toMatchObject({ concurrency: 1 })
    expect((await broker.counts('slow')).completed).toBe(0)
    await send(of({ action: 'resume', worker: slot.id }))
    for (const id of ids) expect(await settled(id)).toMatchObject({ status: 'completed', fencingToken: 1 })
    const long = await enqueue('slow.listening', 30_000)
    await active(long)
    const busy = await eventually(async () => (await slot.pool())?.slots.find(({ task }) => task?.id === long))
    const order = of({ action: 'stop', worker: slot.id, queue: 'slow', slot: busy.slot, how: 'hard' })
    expect((await send(order)).answers).toMatchObject([{ outcome: 'done' }])
    expect((await slot.pool())?.concurrency).toBe(0)
    expect(await eventually(async () => (await broker.find(long))?.status === 'waiting')).toBe(true)
    expect(slot.output()).toMatch(/"by":"a test".*"outcome":"done".*"msg":"a command was carried out"/)
  })

  it('has one pool drained, and another in its place', async () => {
    const { start, enqueue, send, settled, active } = await slowFleet()
    const slot = await start()
    const running = await enqueue('slow.deaf', 400)
    await active(running)
    await send(of({ action: 'drain', worker: slot.id, queue: 'slow', mode: 'soft' }))
    expect(await slot.pool()).toMatchObject({ notReady: 'drained by command' })
    await eventually(async () => (await slot.pool())?.state === 'SHUTDOWN')
    expect(await settled(running)).toMatchObject({ status: 'completed', fencingToken: 1 })
    expect(slot.child.exitCode).toBeNull()
    const waiting = await enqueue('slow.deaf', 10)
    await send(of({ action: 'resume', worker: slot.id, queue: 'slow' }))
    expect(await settled(waiting)).toMatchObject({ status: 'completed', fencingToken: 1 })
  })

  it('ends by command as by a signal: soft waits as long as it takes, and a signal takes over', async () => {
    const { start, enqueue, send, active, broker } = await slowFleet()
    const slot = await start()
    const [short, long] = [await enqueue('slow.deaf', 1_500), await enqueue('slow.listening', 60_000)]
    await Promise.all([active(short), active(long)])
    expect((await send(of({ action: 'drain', worker: slot.id, mode: 'soft' }))).answers).toMatchObject([
      { outcome: 'done', detail: 'the worker ends' },
    ])
    // Its own drain timeout, of 500 ms, is over by then.
    await eventually(async () => (await broker.find(short))?.status === 'completed')
    expect(await slot.status()).toMatchObject({ draining: true })
    expect((await broker.find(long))?.status).toBe('active')
    slot.child.kill('SIGTERM')
    expect(await slot.exited).toBe(0)
    expect(await broker.find(long)).toMatchObject({ status: 'waiting', attemptsMade: 0 })
    expect(slot.output()).toMatch(/"finished":1,"requeued":1.*"msg":"drained"/)
  })

  it('ends by command with a code that tells of what it had to abandon', async () => {
    const { start, enqueue, send, active } = await slowFleet()
    const slot = await start()
    const id = await enqueue('slow.short', 60_000)
    await active(id)
    await send(of({ action: 'drain', worker: slot.id, mode: 'hard' }))
    expect(await slot.exited).toBe(1)
    expect(slot.output()).toMatch(new RegExp(`"id":"${id}".*abandoned`))
  })
})

describe('the drain of a whole queue', () => {
  it('keeps a worker that starts meanwhile from its tasks, until it is lifted', async () => {
    const { start, enqueue, send, settled, broker } = await slowFleet()
    const first = await start()
    await send(of({ action: 'drain', queue: 'slow', mode: 'soft_timeout' }))
    await eventually(async () => (await first.pool())?.state === 'SHUTDOWN')
    const second = await start()
    const id = await enqueue('slow.deaf', 10)
    await eventually(async () => (await second.pool())?.notReady === "its queue's fleet drains")
    expect([(await second.pool())?.state, (await broker.find(id))?.status]).toEqual(['NEW', 'waiting'])
    await send(of({ action: 'resume', queue: 'slow' }))
    expect(await settled(id)).toMatchObject({ status: 'completed', fencingToken: 1 })
    for (const { pool } of [first, second]) await eventually(async () => (await pool())?.state === 'BG_RUNNING')
  })

  it('lightly finishes all that was accepted, and only then ends the pools', async () => {
    const { start, enqueue, send, broker } = await slowFleet()
    const slot = await start()
    const ids = await Promise.all(Array.from({ length: 12 }, () => enqueue('slow.deaf', 400)))
    await send(of({ action: 'drain', queue: 'slow', mode: 'light' }))
    await eventually(async () => (await slot.pool())?.state === 'SHUTDOWN', 15_000)
    for (const id of ids) expect(await broker.find(id)).toMatchObject({ status: 'completed', fencingToken: 1 })
  })
})
