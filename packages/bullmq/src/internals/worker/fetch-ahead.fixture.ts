// A Worker of a pool behind a proxy, whose jobs, calls and starts a test follows.
import { randomUUID } from 'node:crypto'
import type { Candidates } from '@bullpen/engine/internal'
import { eventually, faultProxy } from '@bullpen/testkit'
import { type Job, Queue, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { inject, onTestFinished, vi } from 'vitest'
import { prefixOf, queueKeys } from '../../keys.ts'
import { openLockRenewer } from '../../locks/lock-renewer.ts'
import { silent } from '../../setup.fixture.ts'
import { backendFactory } from '../../store/backend.ts'
import { ConsumerWorker } from './consumer-worker.ts'

export interface FarOptions {
  readonly slots: number
  readonly oneWayMs?: number
  readonly lockMs?: number
  readonly candidates?: Candidates
  /** Whether BullMQ's own Worker is used. */
  readonly isPlain?: boolean
}

export async function farWorker({ slots, oneWayMs = 0, lockMs = 30_000, candidates, isPlain = false }: FarOptions) {
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const redisUrl = inject('redisUrl')
  const proxy = await faultProxy(redisUrl)
  const redis = new Redis(redisUrl, { maxRetriesPerRequest: null })
  const commands = new Redis(proxy.url, { maxRetriesPerRequest: null })
  commands.on('error', () => {})
  const common = { prefix: prefixOf(namespace, 'q'), autorun: false, skipLockRenewal: true, skipStalledCheck: true }
  const queue = new Queue('q', { connection: redis, prefix: common.prefix }, backendFactory({ now: Date.now }))
  const { base, ...keys } = queueKeys(namespace, 'q')
  /** The calls, replies and starts, in their order. */
  const log: string[] = []
  const lost: Job[] = []
  let run: (job: Job) => Promise<unknown> = async () => {}
  const held = Promise.withResolvers<void>()
  const processor = (job: Job): Promise<unknown> => {
    log.push('start')
    return run(job)
  }
  const options = {
    ...common,
    connection: commands,
    concurrency: slots,
    lockDuration: lockMs,
    maximumRateLimitDelay: 50,
  }
  const backend = backendFactory({ now: Date.now, commands, candidates })
  const worker = isPlain
    ? new Worker('q', processor, options, backend)
    : new ConsumerWorker('q', processor, options, backend)
  worker.on('error', () => {})
  const stall = { eventLoopStallLimitMs: undefined, log: silent }
  const renewer = openLockRenewer({ base, lockMs, renewalMs: lockMs / 5, redisUrl, slots, ...stall })
  if (worker instanceof ConsumerWorker) {
    worker.locks = { renewer, redis: commands, base, lockMs, now: Date.now, onLost: (job) => void lost.push(job) }
  }
  onTestFinished(async () => {
    held.resolve()
    proxy.mend()
    proxy.delay(0)
    await worker.close()
    renewer.close()
    await queue.obliterate({ force: true })
    await queue.close()
    commands.disconnect()
    redis.disconnect()
    await proxy.close()
  })
  await Promise.all([worker.waitUntilReady(), renewer.ready])
  // The first call of a script on a connection also sends its text.
  await worker.getNextJob('first', { block: false })
  const send = commands.sendCommand.bind(commands)
  vi.spyOn(commands, 'sendCommand').mockImplementation((command, stream) => {
    if (command.name.startsWith('eval')) {
      log.push('call')
      command.promise.then(
        () => log.push('reply'),
        () => log.push('error'),
      )
    }
    return send(command, stream)
  })
  proxy.delay(oneWayMs)

  const count = (what: string): number => log.filter((each) => each === what).length
  return {
    ...{ proxy, redis, commands, queue, keys: queueKeys(namespace, 'q'), worker, log, lost, count },
    add: (jobs: number) =>
      queue.addBulk(Array.from({ length: jobs }, (_, n) => ({ name: 'x', data: {}, opts: { jobId: `j${n}` } }))),
    /** Lets jobs run until the returned function is called. */
    holdJobs(): () => void {
      run = () => held.promise
      return held.resolve
    },
    onStart(then: (job: Job) => Promise<unknown>): void {
      run = then
    },
    /** Resolves when this many calls have been sent, in the same turn. */
    sent: (calls: number) =>
      new Promise<void>((resolve) => {
        const { push } = log
        log.push = (...more: string[]) => {
          const length = push.apply(log, more)
          if (count('call') >= calls) resolve()
          return length
        }
      }),
    started: (jobs: number) => eventually(() => count('start') >= jobs),
    /** How many jobs wait, are active and are completed. */
    places: () => Promise.all([redis.llen(keys.wait), redis.llen(keys.active), redis.zcard(keys.completed)]),
  }
}
