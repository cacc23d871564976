import { eventually } from '@bullpen/testkit'
import { Queue, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished } from 'vitest'
import { prefixOf } from './keys.ts'
import { quietly } from './quietly.ts'
import { long, rig, short } from './rig.fixture.ts'

/** A handler that runs until it is let go, or its attempt is to end. */
function gate() {
  const open = Promise.withResolvers<void>()
  const entered: string[] = []
  const handle = async ({ id, signal, input }: { id: string; signal: AbortSignal; input: { n: number } }) => {
    entered.push(id)
    await Promise.race([
      open.promise,
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason))),
    ])
    return input
  }
  return { entered, handle, open: () => open.resolve() }
}

describe('a pool', () => {
  it('runs as many tasks at once as it has workers, and says how many', async () => {
    const { entered, handle, open } = gate()
    const { enqueue, startPool, settled } = await rig({ handle, concurrency: 3 })
    const ids = await Promise.all(Array.from({ length: 5 }, () => enqueue(long)))
    const pool = await startPool()
    await eventually(() => entered.length === 3)
    expect([pool.busy(), pool.size(), pool.state()]).toEqual([3, 3, 'BG_RUNNING'])
    open()
    for (const id of ids) expect((await settled(id))?.status).toBe('completed')
    await eventually(() => pool.busy() === 0)
  })

  it('starts once', async () => {
    const { startPool } = await rig()
    const pool = await startPool()
    await expect(pool.start()).rejects.toMatchObject({ code: 'wrong_state' })
  })
})

describe('a drain', () => {
  it('lets running tasks finish, takes no more, and leaves the rest in the queue', async () => {
    const { entered, handle, open } = gate()
    const { enqueue, startPool, broker, drain, settled, events } = await rig({ handle, concurrency: 1 })
    const [running, left] = [await enqueue(long), await enqueue(long)]
    const pool = await startPool()
    await eventually(() => entered.length === 1)
    const drained = drain()
    expect(pool.state()).toBe('SHUTTING_DOWN')
    open()
    expect(await drained).toEqual([{ queue: 'rig', abandoned: [] }])
    expect(pool.state()).toBe('SHUTDOWN')
    expect((await settled(running))?.status).toBe('completed')
    expect((await broker.find(left))?.status).toBe('waiting')
    expect(events.filter(({ event }) => event === 'pool.state')).toMatchObject([
      { from: 'NEW', to: 'BG_RUNNING' },
      { from: 'BG_RUNNING', to: 'SHUTTING_DOWN' },
      { from: 'SHUTTING_DOWN', to: 'SHUTDOWN' },
    ])
  })

  it('hands back, at its deadline, what can not finish: no attempt used, another pool starts it at once', async () => {
    const { entered, handle, open } = gate()
    const { enqueue, startPool, broker, drain, settled } = await rig({ handle })
    const id = await enqueue(long)
    await startPool()
    await eventually(() => entered.length === 1)
    expect(await drain(50, 2_000)).toEqual([{ queue: 'rig', abandoned: [] }])
    expect(await broker.find(id)).toMatchObject({
      status: 'waiting',
      starts: 1,
      attempts: 0,
      history: [{ state: 'TERMINATED_CTX_CLOSED', reason: 'drain', start: 1 }],
    })
    open()
    await startPool()
    expect(await settled(id)).toMatchObject({
      status: 'completed',
      starts: 2,
      attempts: 1,
      history: [{ state: 'TERMINATED_CTX_CLOSED' }, { state: 'DONE_SUCCESS', start: 2, attempt: 1 }],
    })
  })

  it('names what does not end within the grace, ends in TERMINATE_TIMEOUT, and keeps its time', async () => {
    const { promise, resolve } = Promise.withResolvers<{ n: number }>()
    let entered = 0
    const { enqueue, startPool, drain } = await rig({
      handle: () => {
        entered++
        return promise
      },
    })
    const id = await enqueue(short)
    const pool = await startPool()
    await eventually(() => entered === 1)
    const began = performance.now()
    expect(await drain(100, 100)).toEqual([{ queue: 'rig', abandoned: [{ id, task: 'rig.short' }] }])
    expect(performance.now() - began).toBeLessThan(1_200)
    expect(pool.state()).toBe('TERMINATE_TIMEOUT')
    resolve({ n: 1 })
  })

  it('is hurried by a second signal', async () => {
    const { entered, handle } = gate()
    const { enqueue, startPool } = await rig({ handle })
    await enqueue(long)
    const pool = await startPool()
    await eventually(() => entered.length === 1)
    const hurry = new AbortController()
    const drained = pool.drain({ drainMs: 60_000, graceMs: 2_000, hurry: hurry.signal })
    hurry.abort()
    expect(await drained).toEqual({ queue: 'rig', abandoned: [] })
  })

  it('twice is one drain; of a pool that never started it is over at once', async () => {
    const { startPool, drain } = await rig()
    const pool = await startPool()
    const [[first], [second]] = await Promise.all([drain(), drain()])
    expect(second).toBe(first)
    expect(pool.state()).toBe('SHUTDOWN')
  })
})

describe('what this package relies on in BullMQ', () => {
  async function queueOf({ redisUrl, namespace }: { redisUrl: string; namespace: string }) {
    const connection = new Redis(redisUrl, { maxRetriesPerRequest: null })
    const options = { connection, prefix: prefixOf(namespace, 'rig') }
    const queue = new Queue('rig', options)
    onTestFinished(async () => {
      await queue.close()
      connection.disconnect()
    })
    return { queue, options, connection }
  }

  it('keeps a delayed job’s due time in its score above twelve bits', async () => {
    const { queue, connection } = await queueOf(await rig())
    const before = Date.now()
    const { id = '' } = await queue.add('x', {}, { delay: 5_000 })
    const due = Math.floor(Number(await connection.zscore(queue.toKey('delayed'), id)) / 0x1000)
    expect(due).toBeGreaterThanOrEqual(before + 5_000)
    expect(due).toBeLessThanOrEqual(Date.now() + 5_000)
  })

  it('writes a thrown error’s stack with the transition, asks the strategy for the delay, and takes -1 for final', async () => {
    const { queue, options, connection } = await queueOf(await rig())
    const asked: string[] = []
    const settings = {
      backoffStrategy: (_: number, type: string | undefined, error?: Error) => {
        asked.push(`${type} ${error?.message}`)
        return -1
      },
    }
    const worker = new Worker(
      'rig',
      async () => {
        throw Object.assign(new Error('said'), { stack: 'first line\nrest' })
      },
      { ...options, settings },
    )
    onTestFinished(() => worker.close())
    const job = await queue.add('x', {}, { attempts: 5, backoff: { type: 'bullpen' } })
    await eventually(async () => (await job.getState()) === 'failed')
    expect(asked).toEqual(['bullpen said'])
    expect(JSON.parse((await connection.hget(queue.toKey(job.id ?? ''), 'stacktrace')) ?? '')).toEqual([
      'first line\nrest',
    ])
  })
})

describe('quietly', () => {
  it('says a thing once a second, and how often it was left unsaid', () => {
    let now = 0
    const said: [string, number][] = []
    const say = quietly(
      (what: string, dropped) => said.push([what, dropped]),
      () => now,
    )
    for (now = 0; now < 2_500; now += 100) say(`at ${now}`)
    expect(said).toEqual([
      ['at 0', 0],
      ['at 1000', 9],
      ['at 2000', 9],
    ])
  })
})
