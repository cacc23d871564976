// Decides when and where a pool runs a quarantined task: now and apart from other tasks, later, or never again.
import type { Registry } from '../attempt/registry.ts'
import type { AttemptResult } from '../ports/attempt-result.ts'
import type { FetchedTask, TaskQuarantine } from '../ports/consumer.ts'
import type { Apart } from '../quarantine/decision.ts'
import type { Quarantine } from '../quarantine/quarantine.ts'
import type { Slots } from './slots.ts'

export interface QuarantinedRunHost {
  readonly slots: Slots
  readonly quarantine: Quarantine
  readonly registry: Registry
  /** Returns whether the pool may start a task, if the worker is not reserved for another one. */
  readonly mayStart: () => boolean
  /** Aborts when the pool begins to drain. */
  readonly drainBegun: AbortSignal
}

export interface QuarantinedTask extends FetchedTask {
  readonly quarantine: TaskQuarantine
}

export function isQuarantined(task: FetchedTask): task is QuarantinedTask {
  return task.quarantine !== undefined
}

/** Implements `RunTask` for a quarantined task. */
export async function runQuarantined<T>(
  task: QuarantinedTask,
  commit: (result: AttemptResult) => T | Promise<T>,
  release: (delayMs?: number) => T | Promise<T>,
  host: QuarantinedRunHost,
): Promise<T> {
  const { slots, quarantine, mayStart } = host
  const apart = await apartOf(task, host)
  if (!mayStart()) return release()
  const run = (ready: FetchedTask): T | Promise<T> => slots.run(ready, commit) ?? release()
  const place = quarantine.enter(task.quarantine.deaths, apart)
  if (place.kind === 'poison') return run({ ...task, apart: 'poison' })
  if (place.kind === 'wait') return release(place.delayMs)
  try {
    const ready = apart === 'alone' ? await untilAlone(task, place.ready, host) : { ...task, apart }
    return await (ready === undefined ? release() : run(ready))
  } finally {
    place.leave()
  }
}

/** Returns where the task can run. If its definition is unknown, no handler is called, so any place will do. */
async function apartOf({ task }: FetchedTask, { registry }: QuarantinedRunHost): Promise<Apart> {
  const runnable = registry.get(task)
  if (runnable === undefined) return 'own_process'
  return runnable.findApart === undefined ? 'alone' : runnable.findApart()
}

/** Waits until no other attempt is running in the worker. Returns undefined if the task must not start after all. */
async function untilAlone(
  task: QuarantinedTask,
  isAlone: Promise<void>,
  { slots, mayStart, drainBegun }: QuarantinedRunHost,
): Promise<FetchedTask | undefined> {
  const held = slots.hold(task)
  drainBegun.addEventListener('abort', held.end, { once: true })
  try {
    await Promise.race([isAlone, held.ended])
    // The runner ends a cancelled task without starting its handler.
    if (held.task.cancelled !== undefined && !held.hasLostLock) return held.task
    if (drainBegun.aborted || held.hasLostLock || !mayStart()) return undefined
    if (!(await task.quarantine.startAlone())) return undefined
    return mayStart() ? { ...held.task, apart: 'alone' } : undefined
  } finally {
    drainBegun.removeEventListener('abort', held.end)
    held.letGo()
  }
}
