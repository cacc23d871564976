// Worker processes that are steered from outside, over a real Redis: what becomes of their pools, their tasks and themselves.
import { spawn } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { openBroker, openFleet } from '@bullpen/bullmq'
import { type Log, makeTaskId, type Order, type TaskId } from '@bullpen/contract'
import { type CommandRecord, newTask } from '@bullpen/engine'
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
    intake: 'open',
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
  await eventually(() => fleet.processes().then(() => true))
  const known = () => fleet.processes().then(({ processes }) => processes)
  return {
    broker,
    fleet,
    /** A process, once the fleet knows it. */
    async start() {
      const before = new Set((await known()).map(({ process }) => process))
      const child = spawn(process.execPath, [FIXTURE, redisUrl, namespace], { env: { PATH: process.env['PATH'] } })
      let output = ''
      child.stdout.on('data', (chunk) => (output += chunk))
      child.stderr.on('data', (chunk) => (output += chunk))
      const exited = new Promise<number | null>((resolve) => child.on('exit', (code) => resolve(code)))
      onTestFinished(() => void child.kill('SIGKILL'))
      await eventually(() => output.includes('worker ready'))
      const found = await eventually(async () => (await known()).find((each) => !before.has(each.process)))
      const status = async () => (await known()).find((each) => each.process === found.process)
      return {
        id: found.process,
        child,
        exited,
        output: () => output,
        status,
        pool: async () => (await status())?.pools.find(({ queue }) => queue === 'slow'),
      }
    },
    async send(order: Order): Promise<CommandRecord> {
      const { id } = await fleet.send({ id: randomUUID(), order, by: 'a test' })
      const record = await fleet.answered(id, AbortSignal.timeout(10_000))
      if (record === undefined) throw new Error('the command is not there')
      return record
    },
    async enqueue(task: string, ms: number): Promise<TaskId> {
      const id = makeTaskId('slow', Date.now(), randomBytes(10))
      await broker.enqueue(
        newTask(slowTasks.get(task), { ms }, {}, { id, enqueuedAt: Date.now(), correlationId: undefined }),
      )
      return id
    },
    active: (id: TaskId) => eventually(async () => (await broker.find(id))?.status === 'active'),
    settled: (id: TaskId) => broker.settled(id, AbortSignal.timeout(15_000)),
  }
}

const of = (order: Order): Order => order

describe('a worker process', () => {
  it('is known to the fleet with its pools and workers, and no more once it has ended', async () => {
    const { start, enqueue, active, fleet } = await slowFleet()
    const worker = await start()
    const id = await enqueue('slow.listening', 30_000)
    await active(id)
    const status = await eventually(async () => {
      const found = await worker.status()
      return found?.pools.some(({ busy }) => busy === 1) && found
    })
    expect(status).toMatchObject({ pid: worker.child.pid, draining: false, drainTimeoutMs: 500, graceMs: 500 })
    expect(Math.abs(status.skewMs)).toBeLessThan(1_000)
    expect(status.pools).toMatchObject([{ queue: 'slow', state: 'BG_RUNNING', concurrency: 4, paused: false }])
    const task = status.pools[0]?.workers.find((each) => each.task !== undefined)?.task
    expect(task).toMatchObject({ id, task: 'slow.listening', start: 1 })
    expect((task?.endsBy ?? 0) - Date.now()).toBeGreaterThan(50_000)
    worker.child.kill('SIGTERM')
    expect(await worker.exited).toBe(0)
    expect((await fleet.processes()).processes).toEqual([])
  })

  it('is paused, resumed and resized', async () => {
    const { start, enqueue, send, settled, broker, active } = await slowFleet()
    const worker = await start()
    const pausing = await send(of({ action: 'pause', process: worker.id, queue: 'slow' }))
    expect(pausing.answers).toMatchObject([{ process: worker.id, outcome: 'done', detail: 'paused: slow' }])
    expect(await worker.pool()).toMatchObject({ paused: true, notReady: 'paused' })
    const ids = [await enqueue('slow.deaf', 10), await enqueue('slow.deaf', 10)]
    await send(of({ action: 'resize', queue: 'slow', concurrency: 1 }))
    expect(await worker.pool()).toMatchObject({ concurrency: 1 })
    expect((await broker.counts('slow')).completed).toBe(0)
    await send(of({ action: 'resume', process: worker.id }))
    for (const id of ids) expect(await settled(id)).toMatchObject({ status: 'completed', starts: 1 })
    const long = await enqueue('slow.listening', 30_000)
    await active(long)
    const busy = await eventually(async () => (await worker.pool())?.workers.find(({ task }) => task?.id === long))
    const order = of({ action: 'stop', process: worker.id, queue: 'slow', worker: busy.worker, how: 'hard' })
    expect((await send(order)).answers).toMatchObject([{ outcome: 'done' }])
    expect((await worker.pool())?.concurrency).toBe(0)
    expect(await eventually(async () => (await broker.find(long))?.status === 'waiting')).toBe(true)
    expect(worker.output()).toMatch(/"by":"a test".*"outcome":"done".*"msg":"a command was carried out"/)
  })

  it('has one pool drained, and another in its place', async () => {
    const { start, enqueue, send, settled, active } = await slowFleet()
    const worker = await start()
    const running = await enqueue('slow.deaf', 400)
    await active(running)
    await send(of({ action: 'drain', process: worker.id, queue: 'slow', mode: 'soft' }))
    expect(await worker.pool()).toMatchObject({ notReady: 'drained by command' })
    await eventually(async () => (await worker.pool())?.state === 'SHUTDOWN')
    expect(await settled(running)).toMatchObject({ status: 'completed', starts: 1 })
    expect(worker.child.exitCode).toBeNull()
    const waiting = await enqueue('slow.deaf', 10)
    await send(of({ action: 'resume', process: worker.id, queue: 'slow' }))
    expect(await settled(waiting)).toMatchObject({ status: 'completed', starts: 1 })
  })

  it('ends by command as by a signal: soft waits as long as it takes, and a signal takes over', async () => {
    const { start, enqueue, send, active, broker } = await slowFleet()
    const worker = await start()
    const [short, long] = [await enqueue('slow.deaf', 1_500), await enqueue('slow.listening', 60_000)]
    await Promise.all([active(short), active(long)])
    expect((await send(of({ action: 'drain', process: worker.id, mode: 'soft' }))).answers).toMatchObject([
      { outcome: 'done', detail: 'the process ends' },
    ])
    // Its own drain timeout, of 500 ms, is over by then.
    await eventually(async () => (await broker.find(short))?.status === 'completed')
    expect(await worker.status()).toMatchObject({ draining: true })
    expect((await broker.find(long))?.status).toBe('active')
    worker.child.kill('SIGTERM')
    expect(await worker.exited).toBe(0)
    expect(await broker.find(long)).toMatchObject({ status: 'waiting', attempts: 0 })
    expect(worker.output()).toMatch(/"finished":1,"handedBack":1.*"msg":"drained"/)
  })

  it('ends by command with a code that tells of what it had to abandon', async () => {
    const { start, enqueue, send, active } = await slowFleet()
    const worker = await start()
    const id = await enqueue('slow.short', 60_000)
    await active(id)
    await send(of({ action: 'drain', process: worker.id, mode: 'hard' }))
    expect(await worker.exited).toBe(1)
    expect(worker.output()).toMatch(new RegExp(`"id":"${id}".*abandoned`))
  })
})

describe('the drain of a whole queue', () => {
  it('keeps a process that starts meanwhile from its tasks, until it is lifted', async () => {
    const { start, enqueue, send, settled, broker } = await slowFleet()
    const first = await start()
    await send(of({ action: 'drain', queue: 'slow', mode: 'soft_timeout' }))
    await eventually(async () => (await first.pool())?.state === 'SHUTDOWN')
    const second = await start()
    const id = await enqueue('slow.deaf', 10)
    await eventually(async () => (await second.pool())?.notReady === "its queue's fleet drains")
    expect([(await second.pool())?.state, (await broker.find(id))?.status]).toEqual(['NEW', 'waiting'])
    await send(of({ action: 'resume', queue: 'slow' }))
    expect(await settled(id)).toMatchObject({ status: 'completed', starts: 1 })
    for (const { pool } of [first, second]) await eventually(async () => (await pool())?.state === 'BG_RUNNING')
  })

  it('lightly finishes all that was accepted, and only then ends the pools', async () => {
    const { start, enqueue, send, broker } = await slowFleet()
    const worker = await start()
    const ids = await Promise.all(Array.from({ length: 12 }, () => enqueue('slow.deaf', 400)))
    await send(of({ action: 'drain', queue: 'slow', mode: 'light' }))
    await eventually(async () => (await worker.pool())?.state === 'SHUTDOWN', 15_000)
    for (const id of ids) expect(await broker.find(id)).toMatchObject({ status: 'completed', starts: 1 })
  })
})
