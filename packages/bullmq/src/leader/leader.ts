// Elects one of a namespace's processes as its leader. While this process leads, it repeatedly does the housekeeping of every
// registered queue.
//
// Every process with a broker is a candidate, whether it is an API or a worker, because workers may be scaled to zero. The leader
// holds a lease of 3 s and renews it every second. If the leader dies or is cut off, another process takes over when the lease
// expires. If the leader closes, it resigns, and another process takes over at once. A closed process never asks for the lease
// again. The lease comes with a fencing number. A former leader that was paused and comes back can't change anything, because each
// queue refuses a number below the highest that it has seen (fence.ts).
import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { BullpenError, type ErrorCode, type Log } from '@bullpen/contract'
import { assertTransition } from '@bullpen/engine/internal'
import { settlesWithin } from '@bullpen/engine/node'
import { leaderKeys } from '../keys.ts'
import { isConnectionError } from '../redis/outages/outage-reporter.ts'
import { openSubscriber } from '../redis/subscriber.ts'
import { throttledLog } from '../redis/throttled-log.ts'
import type { Commander } from '../scripts/script.ts'
import type { Housekeeping } from './housekeeping.ts'
import { countLeadershipChanges, type LeadershipChanges } from './leadership-changes.ts'
import { BEAT, type LeaseAnswer, resign, takeLease } from './lease-calls.ts'
import { afterAsking, LEADERSHIP_TRANSITIONS, type Leadership, type LeaseTimes } from './lease-decision.ts'
import { type RegisteredQueue, registeredQueues } from './queue-registry.ts'

export interface LeaderTimes extends LeaseTimes {
  /** How often the leader surveys each queue, in ms. */
  readonly roundMs: number
}

/**
 * Locks last for 5 s. If the leader is killed, the next one has visited each queue at least once before the leader's locks expire, so
 * it requeues the leader's tasks in time (lost-tasks.ts).
 */
export const LEADER_TIMES: LeaderTimes = { leaseMs: 3_000, renewMs: 1_000, roundMs: 1_500 }

export interface LeaderOptions {
  readonly redis: Commander
  readonly redisUrl: string
  readonly namespace: string
  /** Returns undefined if the namespace is known to be compatible, and otherwise a promise that rejects if it is not. */
  readonly checkSchema: () => Promise<void> | undefined
  /** Resolves once the clock that the housekeeping uses is right. Until then, this process does not lead. */
  readonly measured: Promise<void>
  readonly housekeeping: Housekeeping
  readonly times: LeaderTimes
  readonly log: Log
}

/** The errors that make a process ineligible until an operator intervenes. */
const INCOMPATIBLE: ReadonlySet<string> = new Set<ErrorCode>(['incompatible_schema', 'unsupported_redis'])

/** Returns the answer for an ineligible process, which then asks again only as often as a follower does. */
const notEligible = ({ leaseMs }: LeaseTimes): LeaseAnswer => ({ fencing: 0, leftMs: leaseMs })

/** How often the same kind of failure is logged, in ms. */
const LOG_EVERY_MS = 60_000
/**
 * How long a closing process waits for its housekeeping, in ms. Without the wait, the process would not learn which tasks its
 * last scripts have ended.
 */
const CLOSE_MS = 1_000

export interface Leader {
  isLeading(): boolean
  /** How often the leadership has changed, as this process has seen it. */
  changes(): LeadershipChanges
  /** Resigns if this process leads, and waits up to a second for the housekeeping in progress. Never rejects. */
  close(): Promise<void>
}

/** Opens a candidate for leadership. Its timers do not keep the process alive. */
export function openLeader(options: LeaderOptions): Leader {
  const { redis, redisUrl, namespace, checkSchema, measured, housekeeping, times, log } = options
  const keys = leaderKeys(namespace)
  // The name shows which process leads. Its random part keeps it unique if several hosts have the same name.
  const holder = `${hostname()}:${process.pid}:${randomUUID().slice(0, 8)}`
  let leadership: Leadership = { state: 'follower', askAt: 0 }
  const changes = countLeadershipChanges()
  /** The highest fencing number of a newer leader that a queue has reported to this process. */
  let above = 0
  let asking: Promise<void> | undefined
  /** Whether the reply to the current request may be outdated when it arrives. */
  let isToAskAgain = false
  let askTimer: NodeJS.Timeout | undefined
  let roundTimer: NodeJS.Timeout | undefined
  /** The queues as last read from the registry, by name. */
  let registry: ReadonlyMap<string, RegisteredQueue> = new Map()
  /** The surveys that are in progress, by queue. */
  const visits = new Map<string, Promise<void>>()

  /** Returns a function that logs a failure at most once a minute. */
  const failureLog = (message: string): ((err: unknown) => undefined) => {
    const write = throttledLog(
      (err: unknown, suppressed) => log.warn({ err, suppressed }, message),
      Date.now,
      LOG_EVERY_MS,
    )
    return (err) => {
      // The outage reporter logs connection errors.
      if (leadership.state !== 'closed' && !isConnectionError(err)) write(err)
      return undefined
    }
  }
  const notAsked = failureLog('lease not requested: this process cannot become the leader')
  const notRead = failureLog('registry of queues not read: the leader cannot visit the queues')

  let isMeasured = false
  measured.then(
    () => {
      isMeasured = true
    },
    () => {},
  )

  const requestLease = async (): Promise<LeaseAnswer | undefined> => {
    if (!isMeasured) return undefined
    try {
      await checkSchema()
      // The process may have closed in the meantime, and must not hold the lease after it has resigned.
      if (leadership.state === 'closed') return undefined
      const reply = await takeLease(redis, keys, { holder, leaseMs: times.leaseMs, above })
      changes.saw(reply.newest, performance.now())
      return reply
    } catch (error) {
      notAsked(error)
      return error instanceof BullpenError && INCOMPATIBLE.has(error.code) ? notEligible(times) : undefined
    }
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
    isToAskAgain = false
    const sentAt = performance.now()
    const answer = await requestLease()
    asking = undefined
    if (leadership.state === 'closed') return
    const asked = { answer, sentAt, now: performance.now(), random: Math.random() }
    moveTo(afterAsking(leadership, asked, times))
    if (isToAskAgain) ask()
  }
  /**
   * Asks for the lease now. If a request is in progress, asks again after its reply, because that reply may predate the reason
   * for asking.
   */
  const ask = (): void => {
    if (asking === undefined) asking = askOnce()
    else isToAskAgain = true
  }

  const leadsUnder = (fencing: number): boolean =>
    leadership.state === 'leader' && leadership.fencing === fencing && performance.now() < leadership.until

  const visitOnce = async (queue: RegisteredQueue, fencing: number): Promise<void> => {
    const deposedBy = await housekeeping.visit(queue, { fencing, isOver: () => !leadsUnder(fencing) })
    visits.delete(queue.name)
    if (deposedBy === undefined) return
    above = Math.max(above, deposedBy)
    ask()
  }
  const visit = (queue: RegisteredQueue): void => {
    if (leadership.state !== 'leader' || !leadsUnder(leadership.fencing) || visits.has(queue.name)) return
    visits.set(queue.name, visitOnce(queue, leadership.fencing))
  }
  const beginRound = (): void => {
    if (leadership.state !== 'leader') return
    roundTimer = setTimeout(beginRound, times.roundMs).unref()
    const { fencing } = leadership
    housekeeping.visitDue({ fencing, isOver: () => !leadsUnder(fencing) })
    registeredQueues(redis, namespace)
      .then((queues) => {
        registry = new Map(queues.map((queue) => [queue.name, queue]))
        queues.forEach(visit)
      })
      .catch(notRead)
  }

  const subscriber = openSubscriber({
    redisUrl,
    channels: [keys.channel],
    onMessage(_channel, queue) {
      if (queue === '') ask()
      else if (queue !== BEAT) visit(registry.get(queue) ?? { name: queue })
    },
    onSubscribed() {},
    log,
  })
  ask()

  return {
    isLeading: () => leadership.state === 'leader' && performance.now() < leadership.until,
    changes: () => changes.counted(performance.now()),
    async close() {
      if (leadership.state !== 'closed') moveTo({ state: 'closed' })
      subscriber.close()
      await asking
      // Resign even if the last request has no reply yet, because it may have been granted. If resigning fails, the lease expires
      // by itself.
      const resigning = resign(redis, keys, holder).catch(() => {})
      const surveys = Promise.all(visits.values())
      await Promise.all([resigning, settlesWithin(surveys.then(housekeeping.settled), CLOSE_MS)])
    },
  }
}

/**
 * Announces that a queue has work for the leader, which would otherwise notice the work only in its next round. Takes one round
 * trip.
 */
export async function wakeLeader(redis: Commander, namespace: string, queue: string): Promise<void> {
  await redis.publish(leaderKeys(namespace).channel, queue)
}
