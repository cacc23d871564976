// The load of the drill `exactness`: tasks of many concurrency keys with different limits, with retries, snoozes, delays and priorities.
import type { CallOptions } from '@bullpen/contract'
import type { z } from 'zod'
import { heavyWork, lightWork, limitedWork } from '../programs/catalogue.ts'
import type { Scale } from '../report.ts'
import { keyName, limitOfKey, NEEDS, PERMITS } from './key-limits.ts'
import type { Limits, Need } from './occupancy.ts'

export interface Plan {
  readonly processes: number
  /** The slots of each process. */
  readonly slots: number
  readonly keys: number
  readonly tasksPerKey: number
  /** How many keys get their tasks together. The slots of all processes are enough for all tasks that these keys may run at once. */
  readonly keysTogether: number
  /** How long a task takes. */
  readonly taskMs: number
  readonly kills: number
  readonly freezes: number
  /** How long a worker is frozen, which is longer than its locks last. */
  readonly freezeMs: number
  /** The mean time between two faults. */
  readonly faultEveryMs: number
}

export const PLANS: Readonly<Record<Scale, Plan>> = {
  small: {
    ...{ processes: 2, slots: 30, keys: 40, tasksPerKey: 10, keysTogether: 10, taskMs: 150 },
    ...{ kills: 2, freezes: 1, freezeMs: 6_500, faultEveryMs: 500 },
  },
  full: {
    ...{ processes: 4, slots: 60, keys: 1_000, tasksPerKey: 20, keysTogether: 50, taskMs: 400 },
    ...{ kills: 20, freezes: 3, freezeMs: 8_000, faultEveryMs: 4_000 },
  },
}

const RETRIED_AFTER_MS = 300
const DELAY_MS = 500

export interface PlannedTask {
  readonly definition: typeof limitedWork | typeof lightWork | typeof heavyWork
  readonly input: z.input<typeof limitedWork.input>
  readonly call: CallOptions
}

/** Returns the n-th task. Each wave has all tasks of some keys, and the keys begin again after the last of them. */
export function taskOf(of: number, plan: Plan): PlannedTask {
  const { keysTogether, tasksPerKey, taskMs } = plan
  const nth = Math.floor(of / keysTogether) % tasksPerKey
  const again = againOf(nth)
  return {
    definition: definitionOf(nth),
    input: { of, ms: taskMs, listens: false, ...(again && { again }) },
    call: {
      concurrencyKey: keyName(keyOf(of, plan)),
      ...(nth % 3 === 0 && { priority: nth % 10 }),
      ...(nth % 5 === 4 && { delay: `${DELAY_MS}ms` }),
    },
  }
}

/** Returns how the first attempt of a key's n-th task ends, if it does not complete the task. */
function againOf(nth: number): PlannedTask['input']['again'] {
  if (nth % 8 === 3) return { by: 'retry', afterMs: RETRIED_AFTER_MS }
  return nth % 8 === 6 ? { by: 'snooze', afterMs: RETRIED_AFTER_MS } : undefined
}

/** Returns the definition of a key's n-th task. One of these tasks needs one permit, and one needs four. */
function definitionOf(nth: number): PlannedTask['definition'] {
  if (nth === 1) return lightWork
  return nth === 7 ? heavyWork : limitedWork
}

function keyOf(of: number, { keys, keysTogether, tasksPerKey }: Plan): number {
  const wave = Math.floor(of / (keysTogether * tasksPerKey))
  return (wave * keysTogether + (of % keysTogether)) % keys
}

export function limitsOf(plan: Plan): Limits {
  const keys = Array.from({ length: plan.keys }, (_, key) => key)
  return {
    capacities: new Map([...keys.map((key) => [keyName(key), limitOfKey(key)] as const), ['db', PERMITS.db]]),
    needsOf: (of) => [{ limit: keyName(keyOf(of, plan)), places: 1 }, ...permitsOf(of, plan)],
  }
}

function permitsOf(of: number, plan: Plan): readonly Need[] {
  const { definition } = taskOf(of, plan)
  if (definition === limitedWork) return []
  return [{ limit: 'db', places: definition === heavyWork ? NEEDS.heavy.db : NEEDS.light.db }]
}
