// Converts between follow-up tasks and the lines that are stored of them. Every broker stores the same lines.
import { BullpenError, type TaskId } from '@bullpen/contract'
import {
  createTaskId,
  encodeLines,
  type FollowUpKind,
  ID_RANDOM_BYTES,
  MAX_FOLLOW_UP_BYTES,
  readTaskId,
  type StoredFollowUp,
  type StoredTemplate,
} from '@bullpen/contract/internal'
import { countedLimits } from '../admission/api-key-limits.ts'
import type { FollowUpTask, NewFollowUp, NewTask } from '../ports/broker/new-task.ts'
import type { PayloadCodec } from '../ports/payload-codec.ts'
import { digestOf, type Sha256 } from '../task/digest.ts'
import { envelopeText } from '../task/envelope.ts'

/**
 * Returns the lines to store with a task, or '' if it has no follow-ups.
 *
 * @throws BullpenError `payload_too_large` if they exceed 64 KiB.
 */
export function followUpLines(followUps: readonly NewFollowUp[] | undefined, codec?: PayloadCodec): string {
  return checkedLines(followUps, codec, (message) => {
    throw new BullpenError('payload_too_large', `the task's ${message}`)
  })
}

/**
 * Like {@link followUpLines}, but for a group.
 *
 * @throws BullpenError `payload_too_large`, with a pointer to each option that has follow-ups.
 */
export function groupFollowUpLines(followUps: readonly NewFollowUp[] | undefined, codec?: PayloadCodec): string {
  return checkedLines(followUps, codec, (text) => {
    const message = `the group's ${text}`
    const pointers = [...new Set(followUps?.map(({ on }) => POINTERS[on]))]
    const errors = pointers.map((pointer) => ({ pointer, message }))
    throw new BullpenError('payload_too_large', `${pointers.join(', ')}: ${message}`, { errors })
  })
}

/** The option that has the follow-ups of a kind. */
const POINTERS = { success: '/onSuccess', failure: '/onFailure', end: '/onEnd' } as const satisfies Record<
  FollowUpKind,
  string
>

function checkedLines(
  followUps: readonly NewFollowUp[] | undefined,
  codec: PayloadCodec | undefined,
  refuse: (message: string) => never,
): string {
  if (followUps === undefined) return ''
  const lines = encodeLines(followUps.map((each) => storedFollowUp(each, codec)))
  const bytes = new TextEncoder().encode(lines).length
  if (bytes <= MAX_FOLLOW_UP_BYTES) return lines
  return refuse(
    `follow-up tasks would take ${bytes} bytes in Redis; the limit is ${MAX_FOLLOW_UP_BYTES} bytes; send less input, for example only an id`,
  )
}

function storedFollowUp({ on, task }: NewFollowUp, codec: PayloadCodec | undefined): StoredFollowUp {
  return { on, template: storedTemplate(task, codec) }
}

/** Returns what is stored of a task until it is enqueued. */
export function storedTemplate(task: FollowUpTask, codec: PayloadCodec | undefined): StoredTemplate {
  const { delayMs, expiresInMs: queueMs, tags, apiKeyName, limits, followUps } = task
  const isCounted = apiKeyName !== undefined && limits?.perApiKey?.maxUnfinishedTasks !== undefined
  return {
    queue: task.queue,
    task: task.task,
    data: envelopeText(task, codec),
    attempts: task.maxAttempts,
    priority: task.priority,
    ...(delayMs !== undefined && delayMs > 0 && { delayMs }),
    ...(queueMs !== undefined && { queueMs }),
    ...(task.events !== undefined && { events: task.events }),
    ...(tags !== undefined && tags.length > 0 && { tags }),
    ...(task.turn !== undefined && { turn: task.turn }),
    ...(task.needs !== undefined && { needs: task.needs }),
    ...(task.services !== undefined && { services: task.services }),
    ...(isCounted && { apiKey: apiKeyName }),
    ...(followUps !== undefined && { followUps: followUps.map((each) => storedFollowUp(each, codec)) }),
  }
}

/** What an end of a task releases. Together, the first four fields are different for every follow-up of every end. */
export interface ReleasedFollowUp {
  /** The id of the task that has ended. */
  readonly source: string
  /** When that task was enqueued, in ms since 1970. A task can have the id of an earlier one that was removed. */
  readonly timestamp: number
  /** How often that task has ended so far: a dead task that is retried ends again. */
  readonly end: number
  /** The follow-up's place among those of this end, such as `s1`. */
  readonly slot: string
  readonly template: StoredTemplate
  /** Further lines for the follow-up task itself, or ''. */
  readonly next: string
}

/** A task that is enqueued from a stored template. `data` and `lines` are stored as they are. */
export interface ForwardedTask {
  readonly task: NewTask
  readonly data: string
  readonly lines: string
}

/** The caller of a task that an outbox has enqueued. */
export const FORWARDER = { token: 'outbox' } as const

/**
 * Returns a digest of what a task's end has released. It depends on the source, the end and the slot alone, so every process that
 * delivers the follow-up gets the same digest, and the same id.
 */
export function releaseDigest({ source, timestamp, end, slot }: ReleasedFollowUp, sha256: Sha256): Uint8Array {
  return digestOf(['follow-up', source, `${timestamp}`, `${end}`, slot], sha256)
}

/** Returns the follow-up task. `now` is in ms since 1970. Its id contains the time at which its source was created. */
export function forwardedTask(released: ReleasedFollowUp, digest: Uint8Array, now: number): ForwardedTask {
  const { source, timestamp, template, next } = released
  const createdAt = readTaskId(source)?.createdAt ?? timestamp
  const id = createTaskId(template.queue, createdAt, digest.subarray(0, ID_RANDOM_BYTES))
  return {
    task: templateTask(template, id, now),
    data: withSource(template.data, source as TaskId, next !== '' && template.followUps === undefined),
    lines: [encodeLines(template.followUps ?? []), next].filter((lines) => lines !== '').join('\n'),
  }
}

/** Returns the task to add from a template. `now` is in ms since 1970. */
export function templateTask(template: StoredTemplate, id: TaskId, now: number): NewTask {
  const { attempts, queueMs, apiKey: apiKeyName, data: _data, followUps: _followUps, ...task } = template
  return {
    ...STORED_IN_DATA,
    ...task,
    id,
    caller: FORWARDER,
    maxAttempts: attempts,
    enqueuedAt: now,
    delayMs: task.delayMs,
    apiKeyName,
    limits: apiKeyName === undefined ? undefined : countedLimits,
    expiresAt: queueMs === undefined ? undefined : now + (task.delayMs ?? 0) + queueMs,
  }
}

/** The fields of a task that only its envelope contains. */
const STORED_IN_DATA = {
  version: 1,
  input: undefined,
  meta: undefined,
  correlationId: undefined,
  concurrencyKey: undefined,
  timeoutMs: undefined,
  heartbeatMs: undefined,
  queueMs: undefined,
  totalMs: undefined,
} as const

/**
 * Returns the envelope with the source's id, which was unknown when a nested follow-up was stored. `isFollowed` is true if the template
 * did not say that the task has follow-ups.
 */
function withSource(data: string, source: TaskId, isFollowed: boolean): string {
  const fields = `"followUpOf":${JSON.stringify(source)},${isFollowed ? '"followed":true,' : ''}`
  return data.replace(/^\{"v":\d+,/, (head) => head + fields)
}
