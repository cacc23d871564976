// The steward: tells the fleet of this process, carries out its commands, and obeys the switches of its queues.
import { BullpenError, type DrainMode, type Log } from '@bullpen/contract'
import {
  BEAT_EVERY_MS,
  type Clock,
  type Command,
  type CommandAnswer,
  type DrainLimits,
  type Fleet,
  type ProcessStatus,
  type QueueSwitches,
  type Told,
} from '@bullpen/engine'
import { carryOut } from './carry-out.ts'
import { deedOf } from './deeds.ts'
import { awaitEmpty } from './emptying.ts'
import type { PoolKeeper } from './pool-keeper.ts'

export interface StewardOptions {
  readonly fleet: Fleet
  readonly clock: Clock
  readonly log: Log
  readonly keeper: PoolKeeper
  readonly about: Omit<ProcessStatus, 'draining' | 'skewMs' | 'pools'>
  readonly limitsOf: (mode: DrainMode, timeoutMs: number | undefined) => DrainLimits
  /** Begins to drain the whole process. */
  readonly endProcess: (mode: DrainMode, timeoutMs: number | undefined) => void
  /** Whether that has begun. */
  readonly ending: () => boolean
}

export interface Steward {
  /**
   * Resolves when it is known what holds for the queues: only then pools may start. It waits for the store as long as it
   * takes; what else goes wrong is logged, and keeps no pool from its work.
   */
  begin(): Promise<void>
  /** The process leaves the fleet. Never rejects. */
  end(): Promise<void>
}

/** While the store is away at the start: nothing else tells of its return. */
const ASK_AGAIN_MS = 100
/** Shorter than this is no loss, but a connection that is being made. */
const LOST_AFTER_MS = BEAT_EVERY_MS
/** An answer that took longer says little of the clocks: the loop may have been blocked. */
const SLOW_MS = 500

/** One line for each command. */
const AUDIT = { done: 'a command was carried out', refused: 'a command was refused' } as const

/** So many commands are known again when they come a second time. */
const REMEMBERED = 1_000

export function openSteward(options: StewardOptions): Steward {
  const { fleet, clock, log, keeper, about, limitsOf, endProcess, ending } = options
  const { process } = about
  const answers = new Map<string, CommandAnswer>()
  /** By queue. */
  const switches = new Map<string, QueueSwitches>()
  const emptying = new Map<string, { readonly command: string; readonly stop: () => void }>()
  let skewMs = 0
  let over = false
  /** On the monotonic clock. */
  let failingSince: number | undefined
  let lost = false
  let beating: Promise<unknown> | undefined
  let again = false
  let stopTimer = (): void => {}
  let stopListening = (): void => {}

  const status = (): ProcessStatus => ({ ...about, draining: ending(), skewMs, pools: keeper.status() })

  const fleetDrains = (queue: string): boolean => {
    const drain = switches.get(queue)?.drain
    return drain !== undefined && drain.mode !== 'light'
  }

  const obey = ({ id, order, by }: Command): CommandAnswer => {
    const known = answers.get(id)
    if (known !== undefined) return known
    const answer = (outcome: 'done' | 'refused', detail: string): CommandAnswer => {
      log.info({ command: id, by, order, outcome, detail }, AUDIT[outcome])
      return { process, outcome, detail, at: clock.now() - skewMs }
    }
    let made: CommandAnswer
    try {
      const means = { keeper, limitsOf, endProcess, fleetDrains }
      made = answer('done', carryOut(deedOf(order, { process, queues: keeper.queues }), id, means))
    } catch (error) {
      if (!(error instanceof BullpenError)) log.error({ err: error, command: id }, 'a command failed')
      made = answer('refused', error instanceof Error ? error.message : String(error))
    }
    answers.set(id, made)
    const [oldest = ''] = answers.keys()
    if (answers.size > REMEMBERED) answers.delete(oldest)
    return made
  }

  const stopEmptying = (queue: string): void => {
    emptying.get(queue)?.stop()
    emptying.delete(queue)
  }

  const follow = (queue: string, { drain }: QueueSwitches): void => {
    const cause = keeper.causeOf(queue)
    if (drain?.mode !== 'light') stopEmptying(queue)
    if (drain === undefined) {
      if (cause?.by === 'switch') keeper.revive(queue)
      return
    }
    if (cause?.command === drain.command) return
    const { mode, timeoutMs, command } = drain
    const end = (): void => keeper.drain(queue, limitsOf(mode, timeoutMs), { by: 'switch', command })
    if (mode !== 'light') end()
    else if (cause === undefined && emptying.get(queue)?.command !== command) {
      stopEmptying(queue)
      emptying.set(queue, { command, stop: awaitEmpty(fleet, queue, clock, end) })
    }
  }

  const hear = async ({ commands, switches: told }: Told): Promise<void> => {
    for (const [queue, each] of told) switches.set(queue, each)
    const fresh = commands.filter(({ id }) => !answers.has(id))
    // One that is told again was answered, and the answer did not arrive.
    const made = commands.map((command) => ({ id: command.id, answer: obey(command) }))
    if (!ending()) for (const [queue, each] of told) follow(queue, each)
    // Whoever has heard the answer, and looks at the fleet, finds it so.
    if (fresh.length > 0) await fleet.beat(status()).catch(() => {})
    await Promise.allSettled(made.map(({ id, answer }) => fleet.answer(id, answer)))
  }

  const beat = async (): Promise<void> => {
    const sentAt = clock.now()
    const told = await fleet.beat(status())
    const heardAt = clock.now()
    if (told.now !== undefined && heardAt - sentAt <= SLOW_MS) skewMs = Math.round((sentAt + heardAt) / 2 - told.now)
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
      if (!over) stopTimer = clock.after(BEAT_EVERY_MS, () => void turn())
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
      stopListening = fleet.listen(process, () => void (over || turn()))
      for (let failure = await turn(); isAway(failure) && !over; failure = await turn()) {
        await new Promise<void>((resolve) => clock.after(ASK_AGAIN_MS, resolve))
      }
    },
    async end() {
      over = true
      stopTimer()
      stopListening()
      for (const queue of emptying.keys()) stopEmptying(queue)
      await beating
      await fleet.leave(process).catch(() => {})
      await fleet.close()
    },
  }
}

function isAway(failure: unknown): boolean {
  return failure instanceof BullpenError && failure.code === 'redis_unavailable'
}
