// Reads a task from its job's fields and from the sorted sets that may hold it. Never scans a list, so the cost does not depend
// on the queue's length.
import {
  type AttemptRecord,
  type GroupId,
  isFinal,
  type Progress,
  type TaskGroup,
  type TaskId,
  type TaskRecord,
  type TaskStatus,
} from '@bullpen/contract'
import {
  decodeLines,
  type Envelope,
  envelopeSchema,
  namedQueues,
  type StoredSuccess,
  successSchema,
} from '@bullpen/contract/internal'
import { MAX_ATTEMPT_RECORDS, MAX_LOSSES, parseIdentity } from '@bullpen/engine/internal'
import { z } from 'zod'
import { decodeStacks, parseJson } from '../codec.ts'
import { DELAYED_SCORE_STEP } from '../internals/status/places.ts'
import { fingerprintIn } from '../internals/status/stored-kind.ts'
import { keyOfLane } from '../internals/turns/lanes.ts'
import { STEP_FIELD } from '../internals/worker/job-scripts.ts'
import type { QueueKeys } from '../keys.ts'
import type { Reads } from './read-together.ts'

/** How many commands {@link addStateReads} adds. */
export const STATE_READS = 8

/** Adds the commands that read one task. */
export function addStateReads(reads: Reads, keys: QueueKeys, id: TaskId): void {
  reads
    .hgetall(keys.job(id))
    .exists(keys.lock(id))
    .zscore(keys.delayed, id)
    .zscore(keys.retrying, id)
    .zscore(keys.completed, id)
    .zscore(keys.failed, id)
    .zscore(keys.cancelled, id)
    .zscore(keys.expired, id)
}

/** Returns whether the replies to {@link addStateReads} show a task that waits in a lane (store/lua/includes/lanes/lanes.lua). */
export function hasLane([fields]: readonly unknown[]): boolean {
  return isHash(fields) && fields['lane'] !== undefined
}

/** Decodes a payload that a codec has encoded. `encoded` says how, as in an envelope. */
export type PayloadDecoder = (stored: unknown, encoded: NonNullable<Envelope['encoded']>) => unknown

/**
 * Decodes the replies to {@link addStateReads}. Returns undefined if the job does not exist. `decode` is called with each payload
 * that a codec has encoded.
 */
export function decodeState(
  id: TaskId,
  queue: string,
  answers: readonly unknown[],
  decode: PayloadDecoder,
): TaskRecord | undefined {
  const [fields, foreignLocks, delayed, retrying, completed, failed, cancelled, expired] = answers
  if (!isHash(fields) || fields['name'] === undefined) return undefined
  const envelope = envelopeSchema.safeParse(parseJson(fields['data']))
  const stored = envelope.success ? envelope.data : undefined
  const attemptsMade = count(fields['atm'])
  const attempts = decodeStacks(fields['stacktrace'])
  const starts = count(fields['ats']) - (failed !== null && diedTooOften(fields, attempts) ? 1 : 0)
  const success = completed === null ? undefined : successSchema.safeParse(parseJson(fields['returnvalue'])).data
  if (completed !== null) attempts.push(successRecord(fields, starts, attemptsMade, success))
  if (failed !== null) attempts.push(...lostAttempt(fields, starts, attemptsMade, attempts))
  const last = attempts.at(-1)
  const isLocked = Boolean(fields['lock']) || foreignLocks === 1
  const status = statusOf({ isLocked, delayed, retrying, completed, failed, cancelled, expired })
  return {
    id,
    task: fields['name'],
    version: stored?.version ?? 1,
    queue,
    status,
    // BullMQ counts a start when a job is fetched. If the task then turned out to be expired or cancelled, it was not started.
    fencingToken: status === 'expired' ? 0 : starts - (last?.fencingToken === 0 && last.slot !== undefined ? 1 : 0),
    // A task that ended without being started did not use an attempt, although BullMQ counted one.
    attemptsMade: last?.fencingToken === 0 ? last.attempt - 1 : attemptsMade,
    maxAttempts: maxAttempts(fields['opts']),
    priority: count(fields['priority']),
    input: stored?.encoded === undefined ? stored?.input : decode(stored.input, stored.encoded),
    meta: stored?.meta ?? {},
    tags: stored?.tags ?? [],
    correlationId: stored?.correlationId,
    traceContext: stored?.traceContext,
    concurrencyKey: stored?.concurrencyKey ?? keyOfLane(fields['lane']),
    enqueuedAt: count(fields['timestamp']),
    dueAt: typeof delayed === 'string' ? Math.floor(Number(delayed) / DELAYED_SCORE_STEP) : undefined,
    startedAt: optional(fields['processedOn']),
    endedAt: optional(fields['finishedOn']),
    // Once a task has ended, the progress that it last reported is meaningless.
    progress: isFinal(status) ? undefined : readProgress(fields['progress']),
    ...stepsIn(fields),
    output: success?.encoded === true ? decode(success.output, true) : success?.output,
    attempts: attempts.slice(-MAX_ATTEMPT_RECORDS),
    ...(status === 'dead' && fingerprintOf(fields)),
    ...retriesIn(fields),
    ...(stored?.followUpOf !== undefined && { followUpOf: stored.followUpOf as TaskId | GroupId }),
    ...followUpsIn(fields),
    ...(stored?.group !== undefined && { group: stored.group as TaskGroup }),
    ...compensationsIn(fields),
    ...(stored?.retryOf !== undefined && { retryOf: stored.retryOf as TaskId }),
  }
}

function fingerprintOf({ fingerprint }: Readonly<Record<string, string>>): Pick<TaskRecord, 'fingerprint'> {
  return fingerprint === undefined ? {} : { fingerprint: fingerprintIn(fingerprint) }
}

const retriesSchema = z.array(z.object({ at: z.number(), by: z.string(), copy: z.string().optional() }))

function retriesIn({ retries }: Readonly<Record<string, string>>): Pick<TaskRecord, 'retries'> {
  if (retries === undefined) return {}
  const found = retriesSchema.safeParse(parseJson(retries))
  if (!found.success) return {}
  return {
    retries: found.data.map(({ at, by, copy }) => ({ at, by, ...(copy !== undefined && { copy: copy as TaskId }) })),
  }
}

function followUpsIn({
  followUps,
}: Readonly<Record<string, string>>): Pick<TaskRecord, 'followUps' | 'followUpQueues'> {
  const found = decodeLines(followUps ?? '')
  if (found.length === 0) return {}
  const notes = found.map(({ on, template: { task, queue } }) => ({ on, task, queue }))
  return { followUps: notes, followUpQueues: namedQueues(found) }
}

function compensationsIn({
  compensations,
  compensated,
}: Readonly<Record<string, string>>): Pick<TaskRecord, 'compensations' | 'compensatedAt'> {
  const identities = compensations?.split('\n').map((line) => line.slice(0, line.indexOf(' ')))
  return {
    ...(identities !== undefined && { compensations: identities.map(parseIdentity) }),
    ...(compensated !== undefined && { compensatedAt: Number(compensated) }),
  }
}

function stepsIn(fields: Readonly<Record<string, string>>): Pick<TaskRecord, 'steps'> {
  const found = Object.keys(fields).filter((field) => field.startsWith(STEP_FIELD))
  return found.length === 0 ? {} : { steps: found.map((field) => field.slice(STEP_FIELD.length)) }
}

/** Whether the task has a lock, which may have expired, and its scores in the sets that may hold it. */
type StatusFacts = { readonly isLocked: boolean } & Readonly<
  Record<'delayed' | 'retrying' | 'completed' | 'failed' | 'cancelled' | 'expired', unknown>
>

/** Returns the task's status. A job that is in none of the sets is active if it has a lock, and waiting otherwise. */
function statusOf(facts: StatusFacts): TaskStatus {
  if (facts.completed !== null) return 'completed'
  if (facts.failed !== null) {
    if (facts.cancelled !== null) return 'cancelled'
    return facts.expired === null ? 'dead' : 'expired'
  }
  if (facts.delayed !== null) return facts.retrying === null ? 'scheduled' : 'retrying'
  return facts.isLocked ? 'active' : 'waiting'
}

/**
 * Builds the record of a successful attempt. Bullpen stores only the output, the worker and the slot. The other fields come from
 * BullMQ's fields.
 */
function successRecord(
  fields: Readonly<Record<string, string>>,
  start: number,
  attempt: number,
  success: StoredSuccess | undefined,
): AttemptRecord {
  const [startedAt, endedAt] = [count(fields['processedOn']), count(fields['finishedOn'])]
  const { worker = 'unknown', slot } = success ?? {}
  return {
    fencingToken: start,
    attempt,
    counted: true,
    state: 'DONE_SUCCESS',
    worker,
    ...(slot !== undefined && { slot }),
    startedAt,
    endedAt,
  }
}

/**
 * Builds the record of the attempt in which the task's worker died once too often. BullMQ then fails the job without calling the
 * processor.
 */
function lostAttempt(
  fields: Readonly<Record<string, string>>,
  start: number,
  attempts: number,
  recorded: readonly AttemptRecord[],
): AttemptRecord[] {
  // A task that was ended while it was waiting has its own record, which does not belong to any start.
  if (start === 0 || recorded.at(-1)?.fencingToken === 0) return []
  if (recorded.some(({ fencingToken }) => fencingToken === start)) return []
  const [startedAt, endedAt] = [count(fields['processedOn']), count(fields['finishedOn'])]
  const message = fields['failedReason'] ?? 'the worker process died'
  return [
    {
      fencingToken: start,
      // BullMQ has counted this attempt.
      attempt: Math.max(1, attempts),
      counted: true,
      state: 'RECOVER_ERR',
      // If the task's workers have not died too often, the cause is an error between BullMQ and Bullpen.
      reason: diedTooOften(fields, recorded) ? 'process_lost' : 'unexpected_error',
      message,
      worker: 'unknown',
      startedAt,
      endedAt,
    },
  ]
}

/**
 * Returns whether the task ended because its workers died too often. In that case, BullMQ fetched the job one last time only to fail
 * it. The handler did not run, so there is no record of that fetch. If there is a record of the last fetch, someone has retried the
 * task since, and it has run again.
 */
function diedTooOften(fields: Readonly<Record<string, string>>, recorded: readonly AttemptRecord[]): boolean {
  return (
    count(fields['stc']) > MAX_LOSSES && !recorded.some(({ fencingToken }) => fencingToken === count(fields['ats']))
  )
}

function maxAttempts(opts: string | undefined): number {
  const parsed = parseJson(opts)
  const attempts = typeof parsed === 'object' && parsed !== null && 'attempts' in parsed ? parsed.attempts : 1
  return typeof attempts === 'number' ? attempts : 1
}

function readProgress(text: string | undefined): Progress | undefined {
  const parsed = parseJson(text)
  if (typeof parsed !== 'object' || parsed === null || !('fraction' in parsed)) return undefined
  const { fraction } = parsed
  const note = 'note' in parsed && typeof parsed.note === 'string' ? parsed.note : undefined
  return typeof fraction === 'number' ? { fraction, note } : undefined
}

function isHash(value: unknown): value is Readonly<Record<string, string>> {
  return typeof value === 'object' && value !== null
}

function count(text: string | undefined): number {
  return Number(text ?? 0)
}

function optional(text: string | undefined): number | undefined {
  return text === undefined ? undefined : Number(text)
}
