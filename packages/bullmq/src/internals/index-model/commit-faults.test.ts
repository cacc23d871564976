// A commit whose connection is cut, or whose process is killed, before or after each of its scripts: the attempt record, BullMQ's
// sets and the status index agree afterwards, whatever was lost.
import { spawn } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import type { TaskId, TaskStatus } from '@bullpen/contract'
import type { Verdict } from '@bullpen/engine/internal'
import { programEnv } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { expect, inject, it, onTestFinished } from 'vitest'
import { unlockTasks } from '../../locks/stored-lock.fixture.ts'
import { throttleScript } from '../../store/scripts.ts'
import { idsInLanes } from '../turns/lane-scan.fixture.ts'
import { violations } from './full-scan.fixture.ts'
import { OPERATIONS } from './operations.fixture.ts'
import { endAs, type Fault, scriptProxy } from './script-proxy.fixture.ts'
import { QUEUE } from './worker.fixture.ts'
import { openWorld, type World } from './world.fixture.ts'

const HOUR = 3_600_000

interface Commit {
  readonly verdict: Verdict | 'released'
  /** The calls of scripts that carry the verdict out, in order. */
  readonly calls: readonly Pick<Fault, 'scripts' | 'argument'>[]
  readonly status: TaskStatus
}

const COMMITS: Readonly<Record<string, Commit>> = {
  completed: { verdict: { kind: 'completed', output: { n: 1 } }, calls: [endAs('completed')], status: 'completed' },
  dead: { verdict: { kind: 'dead' }, calls: [endAs('dead')], status: 'dead' },
  cancelled: { verdict: { kind: 'cancelled' }, calls: [endAs('cancelled')], status: 'cancelled' },
  expired: { verdict: { kind: 'expired' }, calls: [endAs('expired')], status: 'expired' },
  'retried later': { verdict: { kind: 'retrying', delayMs: HOUR }, calls: [endAs('retrying')], status: 'retrying' },
  'retried at once': { verdict: { kind: 'retrying', delayMs: 0 }, calls: [endAs('retried')], status: 'waiting' },
  snoozed: { verdict: { kind: 'snoozed', delayMs: HOUR }, calls: [endAs('scheduled')], status: 'scheduled' },
  requeued: { verdict: { kind: 'requeued', throttleMs: undefined }, calls: [endAs('requeued')], status: 'waiting' },
  throttled: {
    verdict: { kind: 'requeued', throttleMs: 5 },
    calls: [{ scripts: [throttleScript.lua] }, endAs('requeued')],
    status: 'waiting',
  },
  released: { verdict: 'released', calls: [endAs('released')], status: 'waiting' },
}

const CASES = Object.entries(COMMITS).flatMap(([name, { verdict, calls, status }]) =>
  calls.flatMap((call, step) =>
    (['before', 'after'] as const).map((when) => ({
      name,
      verdict,
      status,
      call,
      when,
      step: step + 1,
      of: calls.length,
    })),
  ),
)

/** A proxy, and a world beside it, with a waiting task. `n` is its input. */
async function waitingBehindProxy(n: number) {
  const redisUrl = inject('redisUrl')
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const proxy = await scriptProxy(redisUrl)
  const beside = await openWorld(redisUrl, namespace)
  onTestFinished(async () => {
    await beside.queue.obliterate({ force: true })
    await beside.close()
    proxy.close()
  })
  await eventually(() => beside.broker.ping().then(() => true))
  const { redis, keys, broker } = beside
  await OPERATIONS['enqueue a task']?.(beside, 0, n)
  const [id = ''] = [...(await redis.lrange(keys.wait, 0, -1)), ...(await idsInLanes(redis, keys))]
  const check = async (): Promise<void> => {
    expect(await violations(redis, keys, broker, QUEUE, new Set())).toEqual([])
  }
  return { proxy, beside, id, check, namespace, task: () => broker.find(id as TaskId) }
}

/** Another world whose commands go through the proxy, and which has fetched the task. */
async function behindProxy() {
  const waiting = await waitingBehindProxy(0)
  const faulty: World = await openWorld(waiting.proxy.url, waiting.namespace)
  onTestFinished(() => faulty.close())
  expect(await faulty.fetch('bullpen')).toBe(true)
  return { ...waiting, faulty }
}

it.each(CASES)(
  'a task that is $name has one record and one status if the connection is lost $when script $step of $of',
  async ({ verdict, status, call, when }) => {
    const { proxy, faulty, check, task } = await behindProxy()
    const cut = Promise.withResolvers<void>()
    proxy.arm({ ...call, when, onFault: cut.resolve })
    const ended = faulty.end(
      1,
      () => verdict,
      async () => undefined,
    )
    await cut.promise
    await check()
    await ended
    await check()
    const found = await task()
    expect(found?.status).toBe(status)
    expect(found?.attempts.map(({ fencingToken }) => fencingToken)).toEqual(verdict === 'released' ? [] : [1])
    if (verdict !== 'released') expect(faulty.settled).toEqual(['confirmed'])
  },
)

it.each(CASES)(
  'a task that is $name has one record and one status if its process dies $when script $step of $of',
  async ({ verdict, status, call, when, step, of }) => {
    const { proxy, faulty, beside, id, check, task } = await behindProxy()
    const died = Promise.withResolvers<void>()
    // Nothing is sent any more, as by a process that was killed.
    const kill = (): void => {
      proxy.close()
      died.resolve()
    }
    proxy.arm({ ...call, when, onFault: kill })
    void faulty.end(
      1,
      () => verdict,
      async () => undefined,
    )
    await died.promise
    const { redis, keys } = beside
    await check()
    const isCommitted = when === 'after' && step === of
    if (!isCommitted) {
      expect(await task()).toMatchObject({ status: 'active', attempts: [] })
      await unlockTasks(redis, keys, id)
      await beside.checkForLost()
      await check()
    }
    const expected = isCommitted ? (verdict === 'released' ? [] : [1]) : [1]
    const found = await task()
    expect(found?.status).toBe(isCommitted ? status : 'waiting')
    expect(found?.attempts.map(({ fencingToken }) => fencingToken)).toEqual(expected)
    if (!isCommitted) expect(found?.attempts).toMatchObject([{ reason: 'process_lost', counted: false }])
  },
)

const KILLS = [
  { name: 'retried later', n: 0, call: endAs('retrying'), status: 'retrying' },
  { name: 'dead', n: 1, call: endAs('dead'), status: 'dead' },
  { name: 'snoozed', n: 2, call: endAs('scheduled'), status: 'scheduled' },
  { name: 'completed', n: 4, call: endAs('completed'), status: 'completed' },
].flatMap((each) => (['before', 'after'] as const).map((when) => ({ ...each, when })))

it.each(KILLS)(
  'a task that is $name has one record and one status if its worker is killed with SIGKILL $when the commit',
  async ({ n, call, status, when }) => {
    const { proxy, beside, id, check, task, namespace } = await waitingBehindProxy(n)
    const { redis, keys } = beside
    const fixture = new URL('./worker.fixture.ts', import.meta.url).pathname
    const child = spawn(process.execPath, [fixture, proxy.url, namespace], {
      stdio: 'ignore',
      env: programEnv(),
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    proxy.arm({ ...call, when, onFault: () => void child.kill('SIGKILL') })
    await once(child, 'exit')
    await check()
    if (when === 'before') {
      expect(await task()).toMatchObject({ status: 'active', attempts: [] })
      await unlockTasks(redis, keys, id)
      await beside.checkForLost()
      await check()
    }
    const found = await task()
    expect(found?.status).toBe(when === 'before' ? 'waiting' : status)
    expect(found?.attempts.map(({ fencingToken, reason }) => [fencingToken, reason === 'process_lost'])).toEqual([
      [1, when === 'before'],
    ])
  },
)
