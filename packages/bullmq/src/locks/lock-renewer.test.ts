// Locks of real processes whose event loop is blocked, or whose Redis is silent: which process keeps which task.
import { spawn } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { Log, TaskId } from '@bullpen/contract'
import { createTaskId } from '@bullpen/contract/internal'
import { newTask } from '@bullpen/engine/internal'
import { privateRedis, programEnv } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { openPatientBroker } from '../broker/patient-broker.fixture.ts'
import { queueKeys } from '../keys.ts'
import { LEADER_TIMES } from '../leader/leader.ts'
import { long, setup } from '../setup.fixture.ts'
import { blocker, neighbour, type Said } from './lock-process.fixture.ts'
import { lockLeftMs } from './stored-lock.fixture.ts'

const silent: Log = { debug() {}, info() {}, warn() {}, error() {} }
const QUICK_LEADER = { ...LEADER_TIMES, roundMs: 300 }
const FIXTURE = new URL('./lock-process.fixture.ts', import.meta.url).pathname

async function queueOfProcesses() {
  const [redisUrl, namespace] = [inject('redisUrl'), `t-${randomUUID().slice(0, 12)}`]
  const broker = openPatientBroker({
    redisUrl,
    namespace,
    queues: ['lock'],
    sizeLimit: 10_000,
    log: silent,
    leaderTimes: QUICK_LEADER,
  })
  const said: Said[] = []
  onTestFinished(async () => {
    await Promise.allSettled(broker.boardQueues.map((queue) => queue.obliterate({ force: true })))
    await broker.close()
  })
  await eventually(() => broker.ping().then(() => true))
  return {
    said,
    /** A process that is loaded; `run` starts its pool. */
    async load({ flags = [], args = [] }: { flags?: readonly string[]; args?: readonly string[] } = {}) {
      const child = spawn(process.execPath, [...flags, FIXTURE, redisUrl, namespace, ...args], {
        env: programEnv(),
        stdio: ['pipe', 'pipe', 'inherit'],
      })
      onTestFinished(() => void child.kill('SIGKILL'))
      let rest = ''
      const mine: Said[] = []
      child.stdout.on('data', (chunk) => {
        const lines = `${rest}${chunk}`.split('\n')
        rest = lines.pop() ?? ''
        const news = lines.map((line) => JSON.parse(line) as Said)
        mine.push(...news)
        said.push(...news)
      })
      await eventually(() => mine.some((line) => line.said === 'loaded'))
      return {
        child,
        said: mine,
        async run() {
          child.stdin.write('run')
          await eventually(() => mine.some((line) => line.said === 'ready'))
        },
      }
    },
    async enqueue(task: typeof blocker | typeof neighbour, ms: number): Promise<TaskId> {
      const id = createTaskId('lock', Date.now(), randomBytes(10))
      await broker.enqueue(newTask(task, { ms }, {}, { id, enqueuedAt: Date.now(), correlationId: undefined }))
      await eventually(() => said.some((line) => line.said === 'started' && line.id === id))
      return id
    },
    settled: (id: TaskId) => broker.waitUntilFinished(id, AbortSignal.timeout(120_000)),
  }
}

describe('a handler that blocks the event loop', () => {
  it('for longer than its lock lasts is started nowhere else, and neither are its neighbours', async () => {
    const { said, load, enqueue, settled } = await queueOfProcesses()
    const [first, second] = [await load(), await load()]
    await first.run()
    const bystander = await enqueue(neighbour, 3_500)
    const id = await enqueue(blocker, 2_500)
    await second.run()
    for (const each of [id, bystander]) {
      expect(await settled(each)).toMatchObject({
        status: 'completed',
        fencingToken: 1,
        output: { fencingToken: 1, pid: first.child.pid },
      })
    }
    expect(said.filter((line) => line.said === 'started')).toHaveLength(2)
    expect(said.filter((line) => line.said === 'signalled')).toEqual([])
  })

  it('for longer than the limit loses its tasks to others: it is signalled as soon as possible, and its results are refused', async () => {
    const { load, enqueue, settled } = await queueOfProcesses()
    const [first, second] = [await load({ args: ['500'] }), await load()]
    await first.run()
    const bystander = await enqueue(neighbour, 60_000)
    // On a busy machine, the second process takes seconds to start its pool, which must take the tasks over during the block.
    const id = await enqueue(blocker, 15_000)
    await second.run()
    for (const each of [id, bystander]) {
      expect(await settled(each)).toMatchObject({
        status: 'completed',
        fencingToken: 2,
        output: { fencingToken: 2, pid: second.child.pid },
      })
    }
    await eventually(() => first.said.filter((line) => line.said === 'signalled').length === 2)
    const reason = expect.stringContaining('lost the lock')
    for (const each of [id, bystander]) expect(first.said).toContainEqual({ said: 'signalled', id: each, reason })
    first.child.kill('SIGTERM')
    await eventually(() => first.child.exitCode !== null)
    for (const each of [id, bystander]) {
      expect(await settled(each)).toMatchObject({
        attemptsMade: 1,
        output: { fencingToken: 2 },
        attempts: [
          { fencingToken: 1, reason: 'process_lost', counted: false },
          { fencingToken: 2, state: 'DONE_SUCCESS' },
        ],
      })
    }
  })
})

describe('a Redis that stops answering', () => {
  it('has running tasks signalled before their locks can expire', async () => {
    const server = await privateRedis()
    await server.start()
    const begun = Promise.withResolvers<AbortSignal>()
    const { enqueue, startPool, namespace } = await setup({
      redisUrl: server.url,
      locks: { lockMs: 7_000, renewalMs: 200 },
      roundMs: 60_000,
      handle: ({ signal }) => {
        begun.resolve(signal)
        return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
      },
    })
    const id = await enqueue(long)
    await startPool()
    const signal = await begun.promise
    const redis = new Redis(server.url)
    onTestFinished(() => redis.disconnect())
    const keys = queueKeys(namespace, 'rig')
    let [before, renewals] = [7_000, 0]
    await eventually(async () => {
      const leftMs = await lockLeftMs(redis, keys, id)
      if (leftMs > before) renewals++
      before = leftMs
      return renewals > 2
    })
    const asked = performance.now()
    const leftMs = await lockLeftMs(redis, keys, id)
    expect(leftMs).toBeGreaterThan(0)
    server.freeze()
    const turns = [0, 0]
    const turning = setInterval(() => turns.push(performance.now()), 10)
    onTestFinished(() => clearInterval(turning))
    await once(signal, 'abort')
    // While the event loop is blocked, nothing can be signalled, so only the turn before the signal shows whether it was late.
    expect(turns.at(-2)).toBeLessThan(asked + leftMs)
    expect(signal.reason.message).toContain('lost the lock')
    server.thaw()
  })
})

describe('the renewal thread', () => {
  it('is replaced by the main thread where threads are not permitted, and each end is logged and reported once', async () => {
    const { load, enqueue, settled } = await queueOfProcesses()
    const withoutThreads = { flags: ['--permission', '--allow-fs-read=*'], args: ['', 'two-renewers'] }
    const [first, second] = [await load(withoutThreads), await load()]
    await first.run()
    const id = await enqueue(neighbour, 2_500)
    await second.run()
    expect(await settled(id)).toMatchObject({ status: 'completed', fencingToken: 1 })
    const isEnd = ({ said, reason }: Said) =>
      said === 'thread ended' || reason?.includes('the main thread renews the locks') === true
    // The thread is tried again half a second later. Two renewers have the same callback.
    const ends = await eventually(() => {
      const lines = first.said.filter(isEnd).map((line) => line.said)
      return lines.length >= 4 && lines.slice(0, 4)
    })
    expect(ends).toEqual(['warned', 'thread ended', 'warned', 'thread ended'])
  })

  it('ends with the last pool, and closes its connection', async () => {
    const server = await privateRedis()
    await server.start()
    const { startPool, drain, broker } = await setup({ redisUrl: server.url })
    const redis = new Redis(server.url)
    onTestFinished(() => redis.disconnect())
    const clients = async (): Promise<number> =>
      String(await redis.client('LIST'))
        .trim()
        .split('\n').length
    const before = await clients()
    await Promise.all([startPool(), startPool()])
    // Per pool: one for commands and one that blocks. And one for the locks of both. The broker has subscribed already.
    await eventually(async () => (await clients()) === before + 2 * 2 + 1)
    await drain()
    await eventually(async () => (await clients()) === before)
    expect((await broker.counts('rig')).active).toBe(0)
  })
})
