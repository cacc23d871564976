// The fleet agent sends this worker's heartbeats to the fleet registry and acts on the replies, which contain commands for this
// worker and the drains of its queues.
//
// Only one heartbeat is in flight at a time. Heartbeats are sent every HEARTBEAT_INTERVAL_MS, and immediately when the registry
// announces a command or when a pool starts or stops running. Any of this during a heartbeat leads to one more heartbeat. While the
// registry is unreachable, the pools keep running.
//
// Each command is executed once, and the response describes what was done (commands.ts). A drain of a whole queue has already
// changed the queue's settings. The agent only responds to such a drain, and queue-drains.ts acts on the settings.
import { isConnectionError } from '@bullpen/bullmq/internal'
import { BullpenError, type Log, type PoolState } from '@bullpen/contract'
import {
  type Clock,
  type Command,
  type Fleet,
  HEARTBEAT_INTERVAL_MS,
  type HeartbeatReply,
  isRunning,
  type WorkerStatus,
} from '@bullpen/engine/internal'
import { createCommandLog, executeCommand, planCommand, type SteeredWorker } from './commands.ts'
import { createQueueDrains } from './queue-drains.ts'

export interface FleetAgentOptions extends SteeredWorker {
  readonly fleet: Fleet
  readonly clock: Clock
  readonly log: Log
  readonly about: Omit<WorkerStatus, 'startedAt' | 'draining' | 'skewMs' | 'stalls' | 'pools'>
  /** When the worker started, on the monotonic clock, because the store's time is unknown until the store is reachable. */
  readonly startedAt: number
  /** Returns how far the machine's clock is ahead of the store's, in ms. */
  readonly skewMs: () => number
  /** Returns how the event loop was blocked within the last minute, if it was. */
  readonly stalls: () => WorkerStatus['stalls']
}

export interface FleetAgent {
  /**
   * Starts sending heartbeats. Resolves once the queues' settings are known, since pools must not start before that. Keeps
   * retrying while the store is unreachable. Any other error is logged, and the pools start anyway.
   */
  start(): Promise<void>
  /**
   * Sends a heartbeat if a pool has started or stopped running, because the registry would otherwise say until the next one that a worker
   * does not serve a queue which it serves, or the opposite.
   */
  poolMoved(change: { readonly from: PoolState; readonly to: PoolState }): void
  /** Returns whether the store has accepted a heartbeat, which is a write, within the last 15 s. */
  isAccepted(): boolean
  /** Removes the worker from the registry. Never rejects. */
  close(): Promise<void>
}

/** The delay between the attempts of `start` while the store is unreachable, in ms. */
const RETRY_MS = 100
/**
 * Outages shorter than this are not logged, in ms. Within 5 s, the store's client logs that a connection has become silent, and that line
 * is enough. A process that is paused or whose event loop is blocked notices it later.
 */
const UNREACHABLE_AFTER_MS = 15_000
/** How long after an accepted heartbeat the store counts as usable, in ms. */
const ACCEPTED_FOR_MS = 15_000

export function openFleetAgent(options: FleetAgentOptions): FleetAgent {
  const { fleet, clock, log, logLevel, pools, about, startedAt, skewMs, stalls } = options
  const { worker } = about
  /** Heartbeats are sent from the call of `start` until that of `close`. */
  let isStarted = false
  let closed = false
  /** When heartbeats began to fail, on the monotonic clock. An outage that the store's client has logged does not count. */
  let failingSince: number | undefined
  let isUnreachable = false
  /** When the store last accepted a heartbeat, on the monotonic clock. */
  let acceptedAt = Number.NEGATIVE_INFINITY
  let heartbeat: Promise<unknown> | undefined
  let oneMore = false
  let cancelTimer = (): void => {}
  let stopListening = (): void => {}

  const queueDrains = createQueueDrains({ fleet, clock, pools })
  const execute = ({ id, spec }: Command): string => {
    const plan = planCommand(spec, { worker, queues: pools.queues, draining: pools.isDraining() })
    return executeCommand(plan, id, options, queueDrains.isHeld)
  }
  const commandLog = createCommandLog({ worker, execute, log, now: clock.now })

  const status = (): WorkerStatus => ({
    ...about,
    startedAt: Math.round(clock.at(startedAt)),
    draining: pools.isDraining(),
    skewMs: skewMs(),
    stalls: stalls(),
    pools: pools.status(),
  })

  const act = async ({ commands, queueSettings, logLevel: override }: HeartbeatReply): Promise<void> => {
    // Before the commands, because one of them may change the level of this worker afterwards.
    logLevel.follow(override)
    for (const [queue, settings] of queueSettings) queueDrains.update(queue, settings)
    const isNew = commands.some(({ id }) => !commandLog.has(id))
    // If a command is received again, the response to it was lost.
    const responses = commands.map((command) => ({ command: command.id, response: commandLog.respond(command) }))
    queueDrains.follow()
    // Publish our status before responding, so that the fleet view already shows the change. The exception is a replaced pool,
    // which takes a moment to start, and is shown by the heartbeat that follows its start.
    if (isNew) await fleet.heartbeat(status()).catch(() => {})
    await Promise.allSettled(responses.map(({ command, response }) => fleet.respond(command, response)))
  }

  const sendHeartbeat = async (): Promise<void> => {
    const reply = await fleet.heartbeat(status())
    acceptedAt = clock.monotonic()
    if (isUnreachable) log.info({}, 'fleet registry reachable again')
    isUnreachable = false
    failingSince = undefined
    await act(reply)
  }

  const failed = (err: unknown): unknown => {
    if (isReportedOutage(err)) {
      failingSince = undefined
      return err
    }
    failingSince ??= clock.monotonic()
    const isLate = clock.monotonic() - failingSince >= UNREACHABLE_AFTER_MS
    if (isUnreachable || (isAway(err) && !isLate)) return err
    isUnreachable = true
    log.warn({ err }, 'fleet registry unreachable; pools keep running, but remote commands are delayed')
    return err
  }

  /** Sends a heartbeat and schedules the next one. Resolves with the error of the last heartbeat if it failed. */
  const heartbeatNow = (): Promise<unknown> => {
    oneMore = heartbeat !== undefined
    heartbeat ??= (async () => {
      cancelTimer()
      let failure: unknown
      do {
        oneMore = false
        failure = await sendHeartbeat().then(() => undefined, failed)
      } while (oneMore && !closed)
      heartbeat = undefined
      if (!closed) cancelTimer = clock.after(HEARTBEAT_INTERVAL_MS, () => void heartbeatNow())
      return failure
    })()
    return heartbeat
  }

  return {
    async start() {
      isStarted = true
      stopListening = fleet.listen(worker, () => void (closed || heartbeatNow()))
      for (let failure = await heartbeatNow(); isAway(failure) && !closed; failure = await heartbeatNow()) {
        await new Promise<void>((resolve) => clock.after(RETRY_MS, resolve))
      }
    },
    poolMoved({ from, to }) {
      if (isStarted && !closed && isRunning({ state: from }) !== isRunning({ state: to })) void heartbeatNow()
    },
    isAccepted: () => clock.monotonic() - acceptedAt <= ACCEPTED_FOR_MS,
    async close() {
      closed = true
      cancelTimer()
      stopListening()
      queueDrains.close()
      await heartbeat
      await fleet.leave(worker).catch(() => {})
      await fleet.close()
    },
  }
}

function isAway(failure: unknown): boolean {
  return failure instanceof BullpenError && failure.code === 'redis_unavailable'
}

/** Returns whether the failure is a lost connection, which the broker logs when it is lost and again when it is restored. */
function isReportedOutage(failure: unknown): boolean {
  return isAway(failure) && isConnectionError((failure as BullpenError).cause)
}
