// Decides how a quarantined task runs, and what its attempt shows about it.
//
// A task is quarantined if a process that ran it has died since the task last ended an attempt by itself. The task may have killed
// that process, or may only have run beside the task that did. The task therefore runs apart from other tasks, so that if its
// process dies again, the task is known to be the cause. The functions are pure, and the pool carries out what they decide.
//
// A dead worker may have run many tasks. If their handlers can run only in a worker's own thread, it would take minutes to run them
// one after the other. Tasks that have died once therefore run together, a few at a time. If their worker dies too, each of them has
// died twice, and then runs strictly alone. In the end, only a task that has killed a worker while it was alone is dead.

import type { Outcome } from '../ports/attempt-result.ts'
import type { Random } from '../ports/clock.ts'

/**
 * Where a task can run apart from others:
 *
 * - `own_process`: its definition has `isolation: 'process'`, so the task always runs in a child process.
 * - `process`: its handler can also run in a child process.
 * - `alone`: its handler can run only in the worker's own thread. The worker must not run anything else meanwhile, except other tasks
 *   that have also died only once.
 */
export type Apart = 'own_process' | 'process' | 'alone'

/** How many processes have died because of a task, as far as is known, and after how many it is dead. */
export interface Deaths {
  readonly deaths: number
  readonly maxDeaths: number
}

/** The places that a worker has for quarantined tasks. */
export interface Places {
  /** How many quarantined tasks the worker runs in child processes. */
  readonly inProcesses: number
  readonly maxProcesses: number
  /** How many of the child processes are ready and have no task. */
  readonly idleProcesses: number
  /** The time since a quarantined task last got or left a child process, or began to wait for the first one, in ms. */
  readonly unchangedMs: number
  /**
   * Whether the worker is reserved for tasks that run alone or wait until they can. `open` means that another task that has died once
   * may join them.
   */
  readonly reservation: 'none' | 'open' | 'closed'
  /** How long the worker is not reserved again, in ms. */
  readonly restMs: number
}

export type QuarantineDecision =
  /** Too many processes have died while they ran the task, so the task is dead. */
  | { readonly kind: 'poison' }
  | { readonly kind: 'run'; readonly apart: Apart }
  /** There is no place for the task. It waits in the store for `delayMs`. */
  | { readonly kind: 'wait'; readonly delayMs: number }

/**
 * The shortest and longest time for which a task without a place waits in the store, in ms, and the longest time if a child process is
 * about to be ready.
 */
const WAIT_MS = { least: 200, most: 5_000, mostForStart: 500 }

/**
 * Decides how a task runs that is quarantined after `deaths` deaths. After `maxDeaths` deaths, it is dead.
 *
 * The longer the same tasks have occupied the child processes, the longer a task without a place waits. Looking for a place
 * therefore costs little while other tasks run for a long time. The wait is random, so that tasks do not all return at once.
 */
export function decideQuarantine(
  { deaths, maxDeaths, apart }: Deaths & { readonly apart: Apart },
  places: Places,
  random: Random,
): QuarantineDecision {
  const { unchangedMs, reservation, restMs } = places
  if (deaths >= maxDeaths) return { kind: 'poison' }
  if (reservation === 'open' && apart === 'alone' && mayShare({ deaths, maxDeaths })) return { kind: 'run', apart }
  if (reservation !== 'none') return wait(WAIT_MS.least, random)
  switch (apart) {
    case 'own_process':
      return { kind: 'run', apart }
    case 'process':
      if (!hasPlace(places)) return wait(unchangedMs, random)
      // A task does not wait for its process in this worker, because it would be lost again if the worker died meanwhile.
      return places.idleProcesses > 0
        ? { kind: 'run', apart }
        : wait(Math.min(unchangedMs, WAIT_MS.mostForStart), random)
    case 'alone':
      return restMs <= 0 ? { kind: 'run', apart } : wait(restMs, random)
  }
}

/**
 * Returns whether a task may run together with others that have died as often. If their worker dies, each of them must still have a
 * death left, so that it can show in a worker of its own that it is not the cause.
 */
export function mayShare({ deaths, maxDeaths }: Deaths): boolean {
  return deaths === 1 && maxDeaths > 2
}

/** Returns whether the worker may run one more quarantined task in a child process. */
export function hasPlace({ inProcesses, maxProcesses }: Pick<Places, 'inProcesses' | 'maxProcesses'>): boolean {
  return inProcesses < maxProcesses
}

function wait(ms: number, random: Random): QuarantineDecision {
  const bounded = Math.min(Math.max(ms, WAIT_MS.least), WAIT_MS.most)
  return { kind: 'wait', delayMs: Math.ceil(bounded * (0.5 + random() / 2)) }
}

/** The longest time for which a worker is not reserved again, in ms. */
const MAX_REST_MS = 30_000

/**
 * Returns how long a worker that was reserved for quarantined tasks runs other tasks before it is reserved again, in ms. `tookMs` is
 * how long it was reserved. While there are quarantined tasks, the other tasks thus get a third of the worker's time.
 */
export function restAfter(tookMs: number): number {
  return Math.min(tookMs / 2, MAX_REST_MS)
}

/**
 * What an attempt of a quarantined task shows about the task. `lived` means that the handler ended by itself, so the task is no
 * longer quarantined. `died` means that it ended its child process, which is one more death. Otherwise, the attempt was ended from
 * outside, which shows nothing.
 */
export type Survival = 'lived' | 'died' | undefined

/** Returns what this outcome shows about a quarantined task that ran apart in this way. */
export function survivalOf(outcome: Outcome, apart: Apart): Survival {
  switch (outcome.kind) {
    case 'returned':
    case 'declared':
    case 'snoozed':
    case 'rate_limited':
      return 'lived'
    case 'panicked':
      if (outcome.reason === 'process_lost') return undefined
      if (outcome.reason !== 'isolate_died' && outcome.reason !== 'out_of_memory') return 'lived'
      // If the definition itself asks for a child process, the retry policy decides.
      return apart === 'process' ? 'died' : undefined
    case 'unsupported':
    case 'timed_out':
    case 'closed':
    case 'stopped':
      return undefined
  }
}
