// Elects one of a namespace's processes as its leader, and repeats every registered queue's housekeeping as long as this process
// leads.
//
// Every process with a broker is a candidate, whether it is an API or a worker, because workers may be scaled to zero. The leader
// holds a lease of 3 s and renews it every second. If the leader dies or is cut off, another process takes over when the lease
// expires. If the leader closes, it resigns, and another process takes over at once. The lease comes with a fencing number. A
// former leader that was paused and comes back can't change anything, because each queue refuses a number below the highest that
// it has seen (fence.ts).
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { Log } from '@bullpen/contract'
import { assertTransition } from '@bullpen/engine/internal'
import { leaderKeys } from '../keys.ts'
import { isConnectionError } from '../redis/outage-reporter.ts'
import { openSubscriber } from '../redis/subscriber.ts'
import { throttledLog } from '../redis/throttled-log.ts'
import type { Commander } from '../scripts/script.ts'
import type { Housekeeping } from './housekeeping.ts'
import { afterAsking, LEADERSHIP_TRANSITIONS, type Leadership, type LeaseTimes } from './leadership.ts'
import { type LeaseAnswer, resign, takeLease } from './lease.ts'
import { type RegisteredQueue, registeredQueues } from './queue-registry.ts'

export interface LeaderTimes extends LeaseTimes {
  /** How often the leader surveys each queue, in ms. */
  readonly roundMs: number
}

/**
 * With these times and locks of 5 s, the tasks of a killed worker run again after about 6 s, and after about 8 s if the killed
 * worker was the leader.
 */
export const LEADER_TIMES: LeaderTimes = { leaseMs: 3_000, renewMs: 1_000, roundMs: 1_500 }

export interface LeaderOptions {
  readonly redis: Commander
  readonly redisUrl: string
  readonly namespace: string
  /** Rejects as long as the namespace must not be used. */
  readonly checkSchema: () => Promise<void> | undefined
  /** Resolves once the clock that the housekeeping uses is right. Until then, this process does not lead. */
  readonly measured: Promise<void>
  /** Creates the housekeeping. `onFailed` logs a failure. */
  readonly housekeeping: (onFailed: (error: unknown) => void) => Housekeeping
  readonly times: LeaderTimes
  readonly log: Log
}

export interface Leader {
  isLeading(): boolean
  /** Resigns if this process leads. Never rejects. */
  close(): Promise<void>
}

/** Opens a candidate for leadership. Its timers do not keep the process alive. */
export function openLeader(options: LeaderOptions): Leader {
  const { redis, redisUrl, namespace, checkSchema, measured, times, log } = options
  const keys = leaderKeys(namespace)
  // The name shows which process leads. The random part makes it distinct across hosts with the same name.
  const holder = `${hostname()}:${process.pid}:${randomUUID().slice(0, 8)}`
  const logFailure = throttledLog((err: unknown, suppressed) => log.debug({ err, suppressed }, 'housekeeping failed'))
  let leadership: Leadership = { state: 'follower', askAt: 0 }
  /** The highest fencing number because of which a queue has refused this process. */
  let above = 0
  let asking: Promise<void> | undefined
  let askTimer: NodeJS.Timeout | undefined
  let roundTimer: NodeJS.Timeout | undefined
  /** The queues as last read from the registry, by name. */
  let registry: ReadonlyMap<string, RegisteredQueue> = new Map()
  /** The queues whose round is in progress. */
  const busy = new Set<string>()

  const failed = (err: unknown): undefined => {
    if (leadership.state !== 'closed' && !isConnectionError(err)) logFailure(err)
    return undefined
  }

  const housekeeping = options.housekeeping(failed)

  let isMeasured = false
  measured.then(
    () => {
      isMeasured = true
    },
    () => {},
  )

  const requestLease = async (): Promise<LeaseAnswer | undefined> => {
    if (!isMeasured) return undefined
    await checkSchema()
    return takeLease(redis, keys, { holder, leaseMs: times.leaseMs, above })
  }

  const moveTo = (next: Leadership): void => {
    const before = leadership
    assertTransition('the leadership', LEADERSHIP_TRANSITIONS, before.state, next.state)
    leadership = next
    clearTimeout(askTimer)
    if (next.state === 'closed') clearTimeout(roundTimer)
    else askTimer = setTimeout(ask, Math.max(0, next.askAt - performance.now())).unref()
    if (next.state !== 'leader') {
      if (before.state === 'leader') log.debug({ leaderFencingToken: before.fencing }, 'leadership lost')
      clearTimeout(roundTimer)
    } else if (before.state !== 'leader' || before.fencing !== next.fencing) {
      log.debug({ leaderFencingToken: next.fencing }, 'leading the namespace')
      clearTimeout(roundTimer)
      beginRound()
    }
  }

  const askOnce = async (): Promise<void> => {
    const sentAt = performance.now()
    const answer = await requestLease().catch(failed)
    asking = undefined
    if (leadership.state === 'closed') return
    const asked = { answer, sentAt, now: performance.now(), random: Math.random() }
    moveTo(afterAsking(leadership, asked, times))
  }
  const ask = (): void => {
    asking ??= askOnce()
  }

  const visit = async (queue: RegisteredQueue): Promise<void> => {
    if (leadership.state !== 'leader' || performance.now() >= leadership.until || busy.has(queue.name)) return
    const { fencing } = leadership
    const isOver = (): boolean => leadership.state !== 'leader' || leadership.fencing !== fencing
    busy.add(queue.name)
    try {
      const deposedBy = await housekeeping(queue, { fencing, isOver })
      if (deposedBy === undefined) return
      above = Math.max(above, deposedBy)
      ask()
    } catch (err) {
      failed(err)
    } finally {
      busy.delete(queue.name)
    }
  }
  const beginRound = (): void => {
    if (leadership.state !== 'leader') return
    roundTimer = setTimeout(beginRound, times.roundMs).unref()
    registeredQueues(redis, namespace)
      .then((queues) => {
        registry = new Map(queues.map((queue) => [queue.name, queue]))
        return Promise.all(queues.map(visit))
      })
      .catch(failed)
  }

  const subscriber = openSubscriber({
    redisUrl,
    channels: [keys.channel],
    onMessage(_channel, queue) {
      if (queue === '') ask()
      else void visit(registry.get(queue) ?? { name: queue })
    },
    onSubscribed() {},
    log,
  })
  ask()

  return {
    isLeading: () => leadership.state === 'leader' && performance.now() < leadership.until,
    async close() {
      if (leadership.state !== 'closed') moveTo({ state: 'closed' })
      subscriber.close()
      await asking
      // The last request may have been granted. If this fails, the lease expires by itself.
      await resign(redis, keys, holder).catch(() => {})
    },
  }
}

/** Announces that a queue has work for the leader, which otherwise notices it within a round. Takes one round trip. */
export async function wakeLeader(redis: Commander, namespace: string, queue: string): Promise<void> {
  await redis.publish(leaderKeys(namespace).channel, queue)
}
