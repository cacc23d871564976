// Keeps a worker's places for quarantined tasks, which all of its pools share: some child processes, and the worker itself for one
// task that runs alone.
//
// A worker is reserved from the moment when a task is to run alone until that task has ended. Meanwhile, the pools fetch nothing,
// and release what they have fetched. The task starts when no other attempt is running in any of the pools. An attempt that has
// lost its lock has ended for the store, so it does not hold the task up.
import type { Clock, Random } from '../ports/clock.ts'
import { type Apart, decideQuarantine, hasPlace, type QuarantineDecision, restAfter } from './decision.ts'

export interface QuarantineOptions {
  readonly clock: Pick<Clock, 'monotonic'>
  readonly random: Random
  /** The number of deaths after which a task is dead. Defaults to {@link DEFAULT_MAX_DEATHS}. */
  readonly maxDeaths?: number
  /** How many quarantined tasks may run in child processes at once. Defaults to 0. */
  readonly maxProcesses?: number
  /** The child processes for quarantined tasks. By default, they take no time to start. */
  readonly processes?: QuarantineProcessPool | undefined
}

/** The child processes that a worker keeps for quarantined tasks. */
export interface QuarantineProcessPool {
  /** Returns how many processes are ready and have no task. */
  idle(): number
  /** Starts one more process, unless enough of them are starting. */
  prepare(): void
}

/** A pool of the worker. */
export interface QuarantineMember {
  /** Called when the worker is reserved, and when it is no longer reserved. */
  onReserved(): void
  /** Resolves when no attempt of the pool is running that still has its lock. */
  quiet(): Promise<void>
  isQuiet(): boolean
}

/** A task's place. `leave` must be called once, when the task's attempt is over or was not started. */
export interface QuarantinePlace {
  readonly kind: 'run'
  readonly apart: Apart
  leave(): void
}

export interface Quarantine {
  /** Adds a pool. Returns a function that removes it. */
  join(member: QuarantineMember): () => void
  /** Returns whether a task runs alone in this worker or waits to do so. */
  isReserved(): boolean
  /** Decides how a task runs. If it may run, takes its place, and reserves the worker for a task that runs alone. */
  enter(deaths: number, apart: Apart): QuarantinePlace | Exclude<QuarantineDecision, { kind: 'run' }>
  /** Resolves when no other attempt is running in the worker, which must be reserved. */
  untilAlone(): Promise<void>
}

export const DEFAULT_MAX_DEATHS = 3

/**
 * If a task that waits for a place does not come back within this time, in ms, its wait no longer makes the waits of later tasks
 * longer.
 */
const FORGOTTEN_AFTER_MS = 10_000

const ALWAYS_READY: QuarantineProcessPool = { idle: () => Number.POSITIVE_INFINITY, prepare() {} }

export function createQuarantine({
  clock,
  random,
  maxDeaths = DEFAULT_MAX_DEATHS,
  maxProcesses = 0,
  processes = ALWAYS_READY,
}: QuarantineOptions): Quarantine {
  const members = new Set<QuarantineMember>()
  let inProcesses = 0
  let changedAt = 0
  let lastWaitAt = Number.NEGATIVE_INFINITY
  let isReserved = false
  let restsUntil = Number.NEGATIVE_INFINITY

  const reserve = (reserved: boolean): void => {
    isReserved = reserved
    for (const member of members) member.onReserved()
  }
  const countProcess = (by: 1 | -1): void => {
    inProcesses += by
    changedAt = clock.monotonic()
  }

  const take = (apart: Apart): (() => void) => {
    switch (apart) {
      case 'own_process':
        return () => {}
      case 'process':
        countProcess(1)
        return () => countProcess(-1)
      case 'alone': {
        const reservedAt = clock.monotonic()
        reserve(true)
        return () => {
          const now = clock.monotonic()
          restsUntil = now + restAfter(now - reservedAt)
          reserve(false)
        }
      }
    }
  }

  return {
    join(member) {
      members.add(member)
      return () => members.delete(member)
    },
    isReserved: () => isReserved,
    enter(deaths, apart) {
      const now = clock.monotonic()
      if (inProcesses === 0 && now - lastWaitAt > FORGOTTEN_AFTER_MS) changedAt = now
      const places = {
        inProcesses,
        maxProcesses,
        idleProcesses: processes.idle(),
        unchangedMs: now - changedAt,
        isReserved,
        restMs: restsUntil - now,
      }
      const decision = decideQuarantine({ deaths, maxDeaths, apart }, places, random)
      if (decision.kind === 'run') return { ...decision, leave: take(apart) }
      if (decision.kind === 'wait' && apart === 'process') {
        lastWaitAt = now
        if (hasPlace(places)) processes.prepare()
      }
      return decision
    },
    async untilAlone() {
      // A pool may still start what it had fetched when another pool became quiet.
      while (![...members].every((member) => member.isQuiet())) {
        await Promise.all(Array.from(members, (member) => member.quiet()))
      }
    },
  }
}
