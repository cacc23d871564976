// Replays the ledger of effects to find out how many places of each limit the running tasks have held at once.
//
// The order of the lines is the order in which things happened, because all workers append to one file, a handler writes its end before the
// worker reports it to Redis, and its start after Redis has made the task active. Times of different processes are compared only where a
// lock has expired.
import { attemptKey } from '../ledger/attempts.ts'
import type { Effect } from '../ledger/effects.ts'

/** What a task takes of a limit while it runs, such as one place of its concurrency key. */
export interface Need {
  readonly limit: string
  readonly places: number
}

export interface Limits {
  /** How many places each limit has. */
  readonly capacities: ReadonlyMap<string, number>
  /** What the task with this number needs. */
  needsOf(task: number): readonly Need[]
}

/** The death of a worker. The first `effects` lines of the ledger were written before it. */
export interface Death {
  readonly worker: string
  readonly effects: number
}

/** A worker that was frozen for longer than its locks last. */
export interface Freeze {
  readonly worker: string
  /** When the lock of each active attempt expires unless it is renewed, as unix time in ms. */
  readonly locks: ReadonlyMap<string, number>
}

export interface Disturbance {
  readonly deaths: readonly Death[]
  readonly freezes: readonly Freeze[]
}

export interface Occupancy {
  /** The most places of each limit that were held at once. Attempts of frozen workers do not count once their locks have expired. */
  readonly most: ReadonlyMap<string, number>
  /** The same, but these attempts count until they end. */
  readonly mostOfAll: ReadonlyMap<string, number>
  /** How many attempts frozen workers still ran after their locks had expired. */
  readonly ranUnlocked: number
  /** Returns the limits that have no free place at the end of the ledger, and of which this worker holds places at this time. */
  fullLimitsOf(worker: string, now: number): readonly string[]
}

interface Running {
  readonly needs: readonly Need[]
  readonly worker: string
  readonly lockedUntil: number
}

/** By how much the clocks of Redis and of a worker may differ, in ms. */
const CLOCKS_MS = 10

export function replay(
  effects: readonly Effect[],
  { capacities, needsOf }: Limits,
  { deaths, freezes }: Disturbance,
): Occupancy {
  /** The attempts that run, and those of them whose lock has expired. */
  const running = new Map<string, Running>()
  const unlocked = new Set<string>()
  const [held, heldByAll] = [new Map<string, number>(), new Map<string, number>()]
  const [most, mostOfAll] = [new Map<string, number>(), new Map<string, number>()]
  let ranUnlocked = 0

  const unlockExpired = (now: number): void => {
    for (const [attempt, { needs, lockedUntil }] of running) {
      if (lockedUntil > now + CLOCKS_MS || unlocked.has(attempt)) continue
      unlocked.add(attempt)
      ranUnlocked++
      add(held, needs, -1)
    }
  }
  const end = (attempt: string): void => {
    const { needs = [] } = running.get(attempt) ?? {}
    add(heldByAll, needs, -1)
    if (!unlocked.delete(attempt)) add(held, needs, -1)
    running.delete(attempt)
  }

  const endOfDead = (read: number): void => {
    const dead = deaths.filter((death) => death.effects === read).map(({ worker }) => worker)
    for (const [attempt, { worker }] of running) if (dead.includes(worker)) end(attempt)
  }

  for (const [n, effect] of effects.entries()) {
    endOfDead(n)
    const { what, worker, of = Number.NaN } = effect
    const attempt = attemptKey(effect)
    if (what === 'start') {
      const needs = needsOf(of)
      const frozen = freezes.find((freeze) => freeze.worker === worker && freeze.locks.has(attempt))
      running.set(attempt, { needs, worker, lockedUntil: frozen?.locks.get(attempt) ?? Number.POSITIVE_INFINITY })
      add(held, needs, 1)
      add(heldByAll, needs, 1)
      unlockExpired(effect.at)
      raise(most, held, needs)
      raise(mostOfAll, heldByAll, needs)
    } else if (what === 'end' || what === 'failure') {
      unlockExpired(effect.at)
      end(attempt)
    }
  }
  endOfDead(effects.length)
  return {
    most,
    mostOfAll,
    ranUnlocked,
    fullLimitsOf(worker, now) {
      const own = [...running.values()].filter((each) => each.worker === worker && each.lockedUntil > now)
      const needs = own.flatMap((each) => each.needs)
      const full = needs.filter(({ limit }) => (held.get(limit) ?? 0) >= (capacities.get(limit) ?? 0))
      return [...new Set(full.map(({ limit }) => limit))]
    },
  }
}

function add(held: Map<string, number>, needs: readonly Need[], sign: 1 | -1): void {
  for (const { limit, places } of needs) held.set(limit, (held.get(limit) ?? 0) + sign * places)
}

function raise(most: Map<string, number>, held: ReadonlyMap<string, number>, needs: readonly Need[]): void {
  for (const { limit } of needs) most.set(limit, Math.max(most.get(limit) ?? 0, held.get(limit) ?? 0))
}
