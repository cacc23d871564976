// Builds the keys and arguments of a script that adds a task.
//
// A broker sends an add itself. BullMQ's backend would pack the task's id, name and time, which Redis would unpack again, and the
// job's options, which Redis would unpack and write as JSON. Bullpen sends each of them as it is stored.
import type { QueueLimits } from '@bullpen/contract'
import type { NewTask } from '@bullpen/engine'
import { enqueuedEvent } from '@bullpen/engine/internal'
import { encodeApiKey } from '../../admission/api-key-steps.ts'
import { encodeIdempotency } from '../../admission/idempotency-steps.ts'
import { encodeLimits } from '../../admission/limit-steps.ts'
import { encodeUnique } from '../../admission/unique-steps.ts'
import { encodeLane } from '../turns/lanes.ts'
import { BACKOFF_TYPE } from '../worker/backoff-strategy.ts'
import { ADD } from './add-steps.ts'

/** The keys of BullMQ's scripts that add a job without children, in their order. */
export const ADD_KEYS = {
  addStandardJob: ['wait', 'paused', 'meta', 'id', 'completed', 'delayed', 'active', 'events', 'marker'],
  addDelayedJob: ['marker', 'meta', 'id', 'delayed', 'completed', 'events'],
  addPrioritizedJob: ['marker', 'meta', 'id', 'prioritized', 'delayed', 'completed', 'active', 'events', 'pc'],
} as const

export type AddScript = keyof typeof ADD_KEYS

/** The strings to store for a task: its envelope, and the lines of its follow-ups, or '' if it has none. */
export interface StoredStrings {
  readonly data: string
  readonly followUps: string
  /** The record of a task that is forwarded from an outbox (../../outbox/forwarded-steps.ts). */
  readonly forwarded?: string
  /** The id of a group and the number of its member that the task is, separated by a blank. */
  readonly group?: string
}

/** What the script has to know about a task besides the task. */
export interface AddConditions {
  readonly limits: QueueLimits | undefined
  /** When the task is expected to start, in ms since 1970. */
  readonly expectedStartAt: number | undefined
  /** Whether there is room for a record of the task's idempotency key. */
  readonly hasRoom: boolean
}

/** One run of a script that adds a task. The arguments are BullMQ's, in the form that Bullpen sends, and those of Bullpen's steps. */
export interface Add {
  readonly script: AddScript
  readonly own: readonly string[]
  readonly extra: readonly string[]
}

export function addOf(task: NewTask, stored: StoredStrings, conditions: AddConditions): Add {
  const { delayMs = 0, priority, maxAttempts, expiresAt, tags, caller, events } = task
  const { limits, expectedStartAt, hasRoom } = conditions
  const values: Readonly<Record<(typeof ADD.extra)[number], string>> = {
    id: task.id,
    enqueuedAt: `${task.enqueuedAt}`,
    limits: limits === undefined ? '' : encodeLimits(limits),
    caller: typeof caller === 'object' ? caller.token : '',
    events: events === undefined ? '' : `${events}\n${JSON.stringify(enqueuedEvent(task))}`,
    idempotency: encodeIdempotency(task, expectedStartAt, hasRoom),
    apiKey: encodeApiKey(task, limits),
    taskDelay: delayMs > 0 ? `${delayMs}` : '',
    taskPriority: priority > 0 ? `${priority}` : '',
    expiresAt: expiresAt === undefined ? '' : `${expiresAt}`,
    tags: tags === undefined || tags.length === 0 ? '' : JSON.stringify(tags),
    unique: encodeUnique(task),
    followUps: stored.followUps,
    forwarded: stored.forwarded ?? '',
    group: stored.group ?? '',
    lane: encodeLane(task),
  }
  const delay = delayMs > 0 ? `,"delay":${delayMs}` : ''
  const ranked = priority > 0 ? `,"priority":${priority}` : ''
  const options = `{"attempts":${maxAttempts},"backoff":{"type":"${BACKOFF_TYPE}"}${delay}${ranked}}`
  return {
    script: delay !== '' ? 'addDelayedJob' : ranked !== '' ? 'addPrioritizedJob' : 'addStandardJob',
    own: [task.task, stored.data, options],
    extra: ADD.extra.map((name) => values[name]),
  }
}

/** Returns the keys of each add to the queue whose keys have this prefix. */
export function addKeys(base: string): Readonly<Record<AddScript, readonly string[]>> {
  const keysOf = (script: AddScript) => ADD_KEYS[script].map((key) => base + key)
  return {
    addStandardJob: keysOf('addStandardJob'),
    addDelayedJob: keysOf('addDelayedJob'),
    addPrioritizedJob: keysOf('addPrioritizedJob'),
  }
}
