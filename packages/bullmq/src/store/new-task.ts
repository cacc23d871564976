// Encodes a new task as the arguments that the scripts which add tasks read (lua/includes/add/new-task.lua).
import type { QueueLimits } from '@bullpen/contract'
import type { NewTask } from '@bullpen/engine'
import { enqueuedEvent } from '@bullpen/engine/internal'
import { encodeApiKey } from '../admission/api-key-limits.ts'
import { encodeIdempotency } from '../admission/idempotency-records.ts'
import { encodeLimits } from '../admission/queue-limits.ts'
import { encodeUnique } from '../admission/unique-keys.ts'
import { encodeLane } from '../internals/turns/lanes.ts'
import { BULLPEN_OPTION } from '../internals/worker/foreign-job.ts'

/** The strings to store for a task: its envelope, and the lines of its follow-ups, or '' if it has none. */
export interface StoredStrings {
  readonly data: string
  readonly followUps: string
  /** The record of a task that is forwarded from an outbox (lua/includes/add/forwarded.lua). */
  readonly forwarded?: string
  /** The id of a group and the number of its member that the task is, separated by a blank. */
  readonly group?: string
}

/** What a script has to know about a task besides the task. */
export interface AddConditions {
  readonly limits: QueueLimits | undefined
  /** When the task is expected to start, in ms since 1970. */
  readonly expectedStartAt: number | undefined
  /** Whether there is room for a record of the task's idempotency key. */
  readonly hasRoom: boolean
}

export const NO_CONDITIONS: AddConditions = { limits: undefined, expectedStartAt: undefined, hasRoom: true }

export function newTaskArguments(task: NewTask, stored: StoredStrings, conditions: AddConditions): readonly string[] {
  const { delayMs = 0, priority, expiresAt, tags, caller, events } = task
  const { limits, expectedStartAt, hasRoom } = conditions
  const fields: string[] = []
  const add = (name: string, value: string | undefined): void => {
    if (value !== undefined && value !== '') fields.push(name, value)
  }
  if (delayMs > 0) add('delay', `${delayMs}`)
  if (priority > 0) add('priority', `${priority}`)
  if (expiresAt !== undefined) add('expiresAt', `${expiresAt}`)
  if (tags !== undefined && tags.length > 0) add('tags', JSON.stringify(tags))
  if (mayExist(task)) add('mayExist', '1')
  add('idempotency', encodeIdempotency(task, expectedStartAt, hasRoom))
  add('unique', encodeUnique(task))
  add('apiKey', encodeApiKey(task, limits))
  add('lane', encodeLane(task))
  add('followUps', stored.followUps)
  add('group', stored.group)
  add('forwarded', stored.forwarded)
  return [
    ...[task.id, task.task, stored.data, optionsOf(task), `${task.enqueuedAt}`],
    typeof caller === 'object' ? caller.token : '',
    limits === undefined ? '' : encodeLimits(limits),
    ...(events === undefined ? ['', ''] : [`${events}`, JSON.stringify(enqueuedEvent(task))]),
    `${fields.length / 2}`,
    ...fields,
  ]
}

/** Returns the options of the task's job as BullMQ stores them. */
function optionsOf({ maxAttempts, delayMs = 0, priority }: NewTask): string {
  const delay = delayMs > 0 ? `,"delay":${delayMs}` : ''
  const ranked = priority > 0 ? `,"priority":${priority}` : ''
  return `{"attempts":${maxAttempts},"${BULLPEN_OPTION}":1${delay}${ranked}}`
}

/** Returns whether an earlier call may have stored the task. The script itself looks for the task of a caller with a token. */
function mayExist({ caller, isRepeat = false, onlyExisting = false }: NewTask): boolean {
  return isRepeat || onlyExisting || caller === undefined
}
