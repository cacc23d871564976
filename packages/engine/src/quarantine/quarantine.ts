// Keeps a worker's places for quarantined tasks, which all of its pools share: some child processes, and the worker itself for tasks
// that run alone.
//
// A worker is reserved from the moment when a task is to run alone until that task has ended. The task starts when no other attempt
// is running in any of the pools. An attempt that has lost its lock has ended for the store, so it does not hold the task up. Until
// the task starts, other tasks that have also died once may join it (decision.ts). The pools keep fetching for as long as tasks may
// join. They release all other tasks.
import type { Clock, Random } from '../ports/clock.ts'
import {
  type Apart,
  decideQuarantine,
  hasPlace,
  mayShare,
  type Places,
  type QuarantineDecision,
  restAfter,
} from './decision.ts'

export interface QuarantineOptions {
  readonly clock: Pick<Clock, 'monotonic' | 'after'>
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
  /** Called when {@link Quarantine.isReserved} or {@link Quarantine.mayFetch} may have changed. */
  onReserved(): void
  /** Resolves when no attempt of the pool is running that still has its lock. */
  quiet(): Promise<void>
  isQuiet(): boolean
  /** Returns whether the pool can take several tasks at once. */
  takesSeveral(): boolean
}

/** A task's place. `leave` must be called once, when the task's attempt is over or was not started. */
export interface QuarantinePlace {
  readonly kind: 'run'
  readonly apart: Apart
  /** Resolves when the task may start: if it runs alone, when no other attempt is running in the worker. */
  readonly ready: Promise<void>
  leave(): void
}

export interface Quarantine {
  /** Adds a pool. Returns a function that removes it. */
  join(member: QuarantineMember): () => void
  /** Returns whether a task runs alone in this worker or waits to do so. Other tasks must then not be started. */
  isReserved(): boolean
  /** Returns whether the pools may fetch tasks. */
  mayFetch(): boolean
  /** Decides how a task runs. If it may run, takes its place, and reserves the worker for a task that runs alone. */
  enter(deaths: number, apart: Apart): QuarantinePlace | Exclude<QuarantineDecision, { kind: 'run' }>
  /** Called when a pool of the reserved worker has fetched a task that is not quarantined. No more tasks may then join. */
  close(): void
}

export const DEFAULT_MAX_DEATHS = 3

/** How many tasks that have died once may run together in a worker that is reserved for them. */
export const MAX_TOGETHER = 8
/** How long a worker without other attempts waits for more of these tasks, in ms. Tasks that were lost together are fetched one by one. */
const GATHER_MS = 50

interface Reservation {
  readonly since: number
  readonly ready: Promise<void>
  tasks: number
  /** Whether other tasks may join. */
  isOpen: boolean
}

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
  let reservation: Reservation | undefined
  let restsUntil = Number.NEGATIVE_INFINITY

  const notify = (): void => {
    for (const member of members) member.onReserved()
  }
  const close = (): void => {
    if (reservation?.isOpen !== true) return
    reservation.isOpen = false
    notify()
  }
  const reserve = (isOpen: boolean): Reservation => {
    const gathered = isOpen ? new Promise<void>((resolve) => clock.after(GATHER_MS, resolve)) : Promise.resolve()
    const ready = gathered.then(async () => {
      // A pool may still start what it had fetched when another pool became quiet.
      while (![...members].every((member) => member.isQuiet())) {
        await Promise.all(Array.from(members, (member) => member.quiet()))
      }
      if (reservation === made) close()
    })
    const made: Reservation = { since: clock.monotonic(), ready, tasks: 0, isOpen }
    reservation = made
    notify()
    return made
  }
  const countProcess = (by: 1 | -1): void => {
    inProcesses += by
    changedAt = clock.monotonic()
  }

  const take = (apart: Apart, deaths: number): Pick<QuarantinePlace, 'ready' | 'leave'> => {
    switch (apart) {
      case 'own_process':
        return { ready: Promise.resolve(), leave() {} }
      case 'process':
        countProcess(1)
        return { ready: Promise.resolve(), leave: () => countProcess(-1) }
      case 'alone': {
        const own =
          reservation ??
          reserve(mayShare({ deaths, maxDeaths }) && [...members].some((member) => member.takesSeveral()))
        own.tasks++
        if (own.tasks === MAX_TOGETHER) close()
        return {
          ready: own.ready,
          leave() {
            own.tasks--
            if (own.tasks > 0) return
            const now = clock.monotonic()
            restsUntil = now + restAfter(now - own.since)
            reservation = undefined
            notify()
          },
        }
      }
    }
  }

  return {
    join(member) {
      members.add(member)
      return () => members.delete(member)
    },
    isReserved: () => reservation !== undefined,
    mayFetch: () => reservation?.isOpen !== false,
    close,
    enter(deaths, apart) {
      const now = clock.monotonic()
      if (inProcesses === 0 && now - lastWaitAt > FORGOTTEN_AFTER_MS) changedAt = now
      const places: Places = {
        inProcesses,
        maxProcesses,
        idleProcesses: processes.idle(),
        unchangedMs: now - changedAt,
        reservation: reservation === undefined ? 'none' : reservation.isOpen ? 'open' : 'closed',
        restMs: restsUntil - now,
      }
      const decision = decideQuarantine({ deaths, maxDeaths, apart }, places, random)
      if (decision.kind === 'run') return { ...decision, ...take(apart, deaths) }
      if (decision.kind === 'wait' && apart === 'process') {
        lastWaitAt = now
        if (hasPlace(places)) processes.prepare()
      }
      return decision
    },
  }
}
