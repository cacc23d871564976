// The steward: tells the fleet of this worker, carries out its commands, and obeys the switches of its queues.
import { BullpenError, type DrainMode, type Log } from '@bullpen/contract'
import {
  type Clock,
  type DrainLimits,
  type Fleet,
  HEARTBEAT_INTERVAL_MS,
  type HeartbeatReply,
  type WorkerStatus,
} from '@bullpen/engine/internal'
import type { PoolSupervisor } from '../pools/pool-supervisor.ts'
import { createCommandLog } from './command-log.ts'
import { followDrains } from './queue-drains.ts'

export interface StewardOptions {
  readonly fleet: Fleet
  readonly clock: Clock
  readonly log: Log
  readonly keeper: PoolSupervisor
  readonly about: Omit<WorkerStatus, 'startedAt' | 'draining' | 'skewMs' | 'pools'>
  /** When the worker began, on the monotonic clock: the store's time is not known before the store is reached. */
  readonly startedAt: number
  /** By how much the machine's clock is ahead of the store's. */
  readonly skewMs: () => number
  readonly limitsOf: (mode: DrainMode, timeoutMs: number | undefined) => DrainLimits
  /** Begins to drain the whole worker. */
  readonly endProcess: (mode: DrainMode, timeoutMs: number | undefined) => void
  /** Whether that has begun. */
  readonly ending: () => boolean
}

export interface FleetAgent {
  /**
   * Resolves when it is known what holds for the queues: only then pools may start. It waits for the store as long as it
   * takes; what else goes wrong is logged, and keeps no pool from its work.
   */
  begin(): Promise<void>
  /** The worker leaves the fleet. Never rejects. */
  end(): Promise<void>
}

/** While the store is away at the start: nothing else tells of its return. */
const ASK_AGAIN_MS = 100
/** Shorter than this is no loss, but a connection that is being made. */
const LOST_AFTER_MS = HEARTBEAT_INTERVAL_MS

export function openFleetAgent(options: StewardOptions): FleetAgent {
  const { fleet, clock, log, keeper, about, startedAt, skewMs, limitsOf, endProcess, ending } = options
  const { worker } = about
  let over = false
  /** On the monotonic clock. */
  let failingSince: number | undefined
  let lost = false
  let beating: Promise<unknown> | undefined
  let again = false
  let stopTimer = (): void => {}
  let stopListening = (): void => {}

  const status = (): WorkerStatus => ({
    ...about,
    startedAt: Math.round(clock.at(startedAt)),
    draining: ending(),
    skewMs: skewMs(),
    pools: keeper.status(),
  })

  const drains = followDrains({ fleet, clock, keeper, limitsOf, ending })
  const ledger = createCommandLog({
    worker,
    log,
    now: clock.now,
    keeper,
    limitsOf,
    endProcess,
    ending,
    fleetDrains: drains.keepsFromWork,
  })

  const hear = async ({ commands, switches }: HeartbeatReply): Promise<void> => {
    for (const [queue, each] of switches) drains.hear(queue, each)
    const isNews = commands.some(({ id }) => !ledger.has(id))
    // One that is told again was answered, and the answer did not arrive.
    const answers = commands.map((command) => ({ command: command.id, answer: ledger.answer(command) }))
    drains.follow()
    // Whoever has heard the answer, and looks at the fleet, finds it so; but for a pool that is made anew, which takes a moment.
    if (isNews) await fleet.beat(status()).catch(() => {})
    await Promise.allSettled(answers.map(({ command, answer }) => fleet.answer(command, answer)))
  }

  const beat = async (): Promise<void> => {
    const told = await fleet.beat(status())
    if (lost) log.info({}, 'the fleet is reached again')
    lost = false
    failingSince = undefined
    await hear(told)
  }

  /** One at a time; one more follows when it was woken meanwhile. */
  const turn = (): Promise<unknown> => {
    again = beating !== undefined
    beating ??= (async () => {
      stopTimer()
      let failure: unknown
      do {
        again = false
        failure = await beat().then(() => undefined, failed)
      } while (again && !over)
      beating = undefined
      if (!over) stopTimer = clock.after(HEARTBEAT_INTERVAL_MS, () => void turn())
      return failure
    })()
    return beating
  }

  const failed = (err: unknown): unknown => {
    failingSince ??= clock.monotonic()
    if (!isAway(err) || clock.monotonic() - failingSince >= LOST_AFTER_MS) {
      if (!lost) log.warn({ err }, 'the fleet is not reached: no commands come, and the pools go on')
      lost = true
    }
    return err
  }

  return {
    async begin() {
      stopListening = fleet.listen(worker, () => void (over || turn()))
      for (let failure = await turn(); isAway(failure) && !over; failure = await turn()) {
        await new Promise<void>((resolve) => clock.after(ASK_AGAIN_MS, resolve))
      }
    },
    async end() {
      over = true
      stopTimer()
      stopListening()
      drains.close()
      await beating
      await fleet.leave(worker).catch(() => {})
      await fleet.close()
    },
  }
}

function isAway(failure: unknown): boolean {
  return failure instanceof BullpenError && failure.code === 'redis_unavailable'
}
