// A task as its job's own fields and sets tell it: never by scanning a list, whatever the queue's length.
import {
  type AttemptRecord,
  isFinal,
  type Progress,
  type TaskId,
  type TaskRecord,
  type TaskStatus,
} from '@bullpen/contract'
import { envelopeSchema, type StoredSuccess, successSchema } from '@bullpen/contract/internal'
import { MAX_ATTEMPT_RECORDS, MAX_DEATHS, statusOfDelayed, statusOfEnded } from '@bullpen/engine/internal'
import type { ChainableCommander } from 'ioredis'
import { decodeStacks, parseJson } from '../codec.ts'
import { STEP_FIELD } from '../internals/job-scripts.ts'
import type { QueueKeys } from '../keys.ts'

/** How many commands {@link askState} adds. */
export const STATE_COMMANDS = 5

/** Adds the questions about one task to a transaction, so that all are answered for one moment. */
export function askState(transaction: ChainableCommander, keys: QueueKeys, id: TaskId): ChainableCommander {
  return transaction
    .hgetall(keys.job(id))
    .exists(keys.lock(id))
    .zscore(keys.delayed, id)
    .zscore(keys.completed, id)
    .zscore(keys.failed, id)
}

/** BullMQ keeps a delayed job's due time in the upper bits of its score, and a counter in the lower twelve. */
const DELAYED_SCORE_STEP = 0x1000

/** The task from the answers, in the order of the questions; undefined when there is no such job. */
export function readState(id: TaskId, queue: string, answers: readonly unknown[]): TaskRecord | undefined {
  const [fields, locked, delayed, completed, failed] = answers
  if (!isHash(fields) || fields['name'] === undefined) return undefined
  const envelope = envelopeSchema.safeParse(parseJson(fields['data']))
  const stored = envelope.success ? envelope.data : undefined
  const starts = failed !== null && diedTooOften(fields) ? count(fields['ats']) - 1 : count(fields['ats'])
  const attempts = count(fields['atm'])
  const history = decodeStacks(fields['stacktrace'])
  const success = completed === null ? undefined : successSchema.safeParse(parseJson(fields['returnvalue'])).data
  if (completed !== null) history.push(successOf(fields, starts, attempts, success))
  if (failed !== null) history.push(...unrecordedDeath(fields, starts, attempts, history))
  const last = history.at(-1)
  const status = statusOf({ locked: locked === 1, delayed, completed, failed, attempts, last })
  return {
    id,
    task: fields['name'],
    version: stored?.version ?? 1,
    queue,
    status,
    // BullMQ counts a start when a task is taken; one that was found expired or cancelled then did not come to it.
    fencingToken: status === 'expired' ? 0 : starts - (last?.fencingToken === 0 && last.slot !== undefined ? 1 : 0),
    // One that was ended without a start has used up none by that, whatever BullMQ counted.
    attemptsMade: last?.fencingToken === 0 ? last.attempt - 1 : attempts,
    maxAttempts: maxAttempts(fields['opts']),
    input: stored?.input,
    meta: stored?.meta ?? {},
    tags: stored?.tags ?? [],
    correlationId: stored?.correlationId,
    enqueuedAt: count(fields['timestamp']),
    dueAt: typeof delayed === 'string' ? Math.floor(Number(delayed) / DELAYED_SCORE_STEP) : undefined,
    startedAt: optional(fields['processedOn']),
    endedAt: optional(fields['finishedOn']),
    // What was last reported before the end says nothing of a task that has ended.
    progress: isFinal(status) ? undefined : readProgress(fields['progress']),
    ...stepsIn(fields),
    output: success?.output,
    attempts: history.slice(-MAX_ATTEMPT_RECORDS),
  }
}

function stepsIn(fields: Readonly<Record<string, string>>): Pick<TaskRecord, 'steps'> {
  const found = Object.keys(fields).filter((field) => field.startsWith(STEP_FIELD))
  return found.length === 0 ? {} : { steps: found.map((field) => field.slice(STEP_FIELD.length)) }
}

interface Facts {
  readonly locked: boolean
  readonly delayed: unknown
  readonly completed: unknown
  readonly failed: unknown
  readonly attempts: number
  readonly last: AttemptRecord | undefined
}

/** Sets first, since a job is in one of them at most; then the lock, which a running attempt holds. */
function statusOf({ locked, delayed, completed, failed, attempts, last }: Facts): TaskStatus {
  if (completed !== null) return 'completed'
  if (failed !== null) return statusOfEnded(last)
  if (delayed !== null) return statusOfDelayed(attempts, last)
  return locked ? 'active' : 'waiting'
}

/** Of a success only output and process are stored: BullMQ's fields say the rest. */
function successOf(
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

/** BullMQ itself fails a job whose process died too often, and calls nobody: that start has no record of its own. */
function unrecordedDeath(
  fields: Readonly<Record<string, string>>,
  start: number,
  attempts: number,
  recorded: readonly AttemptRecord[],
): AttemptRecord[] {
  // One that was ended while it waited has its own record, without a start.
  if (start === 0 || recorded.at(-1)?.fencingToken === 0 || recorded.some((end) => end.fencingToken === start))
    return []
  const [startedAt, endedAt] = [count(fields['processedOn']), count(fields['finishedOn'])]
  const message = fields['failedReason'] ?? 'the process that ran it died'
  return [
    {
      fencingToken: start,
      // BullMQ has counted it.
      attempt: Math.max(1, attempts),
      counted: true,
      state: 'RECOVER_ERR',
      // More deaths than a task may have, or something that went wrong between us and BullMQ.
      reason: diedTooOften(fields) ? 'process_lost' : 'unexpected_error',
      message,
      worker: 'unknown',
      startedAt,
      endedAt,
    },
  ]
}

/** BullMQ takes such a job once more, to fail it: that is no start. */
function diedTooOften(fields: Readonly<Record<string, string>>): boolean {
  return count(fields['stc']) > MAX_DEATHS
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
