// Translates between BullMQ and the engine: turns a job into a fetched task, and a verdict into an action by BullMQ.
//
// A commit tells the job's backend how the attempt has ended (store/attempt-end.ts), and then BullMQ, by a result or an error, whether
// it has failed. BullMQ calls the method of its backend that moves the job accordingly, and the backend carries out the verdict that it
// was told, with its delay, reason and attempt records. A task that is retried goes into the set `retrying` and, if the queue has
// cancel rules, into `cancel-returned`. If the delay is 0, it returns to `wait` at once. When the delay has passed on Redis's clock,
// any of the queue's workers may fetch the task again. The same script makes the delay longer if the retry is beyond its definition's
// budget (store/lua/includes/end/retry-budget.lua).
//
// A commit is settled once Redis has replied to the script that carries out the verdict (store/attempt-end.ts). Redis refuses the
// commit if the task's lock is gone or taken, or if the task was removed, is not active or has children. The commit is also
// refused if Redis replies with an error (`store_error`), or if BullMQ moves the task in another way (`overridden`). If no reply
// arrives, the commit remains pending, and ioredis or BullMQ sends the script again. If Redis has already run the script, the
// repeated script recognises what this attempt has stored, and the commit is confirmed (store/lua/includes/end/resent-end.lua).
import type { AttemptRecord, CommitRefusal, TaskId } from '@bullpen/contract'
import type { Envelope, StoredSuccess } from '@bullpen/contract/internal'
import type { PayloadCodec } from '@bullpen/engine'
import {
  type AttemptEvents,
  type AttemptResult,
  type ConsumerHost,
  encodePayload,
  errorKind,
  type FetchedTask,
  MAX_ATTEMPT_RECORDS,
  type TaskDeath,
  type TaskQuarantine,
  type Verdict,
} from '@bullpen/engine/internal'
import { sha256 } from '@bullpen/engine/node'
import { DelayedError, type Job, UnrecoverableError, WaitingError } from 'bullmq'
import { describeEnd, encodeStack } from './codec.ts'
import type { EventBuffer } from './events/event-buffer.ts'
import { backendOf, bullpenBackendOf, stepsOf, throttleKeyOf, throttleQueue } from './internals/worker/job-scripts.ts'
import type { AttemptCounts } from './retry-budget/attempt-counts.ts'
import { encodeCalls } from './store/attempt-end.ts'

/** What a consumer or a processor commits its attempts with. */
export interface CommitHost {
  /** Called once Redis has replied to a commit. */
  readonly settled: ConsumerHost['settled']
  readonly codec: PayloadCodec | undefined
  readonly attempts: AttemptCounts
  readonly events: EventBuffer
  /** Called when Redis has confirmed the end of a task that has follow-ups or compensations. */
  readonly onFollowed?: (() => void) | undefined
}

export function toFetchedTask(
  job: Job,
  token: string,
  codec: PayloadCodec | undefined,
  events?: AttemptEvents,
  quarantine?: TaskQuarantine,
): FetchedTask {
  return {
    id: job.id as TaskId,
    task: job.name,
    envelope: job.data,
    codec,
    enqueuedAt: job.timestamp,
    fencingToken: job.attemptsStarted,
    attempt: job.attemptsMade + 1,
    maxAttempts: job.opts.attempts ?? 1,
    readyAt: job.attemptsStarted === 1 ? job.timestamp + (job.opts.delay ?? 0) : undefined,
    events,
    progress: (progress) => job.updateProgress(progress),
    steps: stepsOf(job, token, codec),
    ...(quarantine !== undefined && { quarantine }),
  }
}

/**
 * Tells the job's backend how the attempt has ended. Returns what BullMQ stores as the job's result, or throws the error of a failed
 * attempt, or one that makes BullMQ leave the job. `rule` is the id of the cancel rule because of which the task was not started, if
 * any.
 */
export function commit(
  result: AttemptResult,
  job: Job,
  token: string,
  host: CommitHost,
  rule?: string,
): StoredSuccess | Promise<never> {
  const { verdict, record, error } = result
  const stack = verdict.kind === 'completed' ? '' : encodeStack(record, error)
  if (verdict.kind === 'lost') {
    host.events.close(job, result)
    host.settled(result)
  } else {
    settleWhenAnswered(job, result, token, host, { rule, stack })
  }
  switch (verdict.kind) {
    case 'completed':
      return storedSuccess(verdict.output, record, host.codec)
    case 'retrying':
    case 'dead':
    case 'cancelled':
    case 'expired':
      throw failure(job, result, stack)
    case 'requeued':
      return throttleFor(job, verdict).then(() => requeue(job, token))
    case 'snoozed':
      return snooze(verdict.delayMs, job, token)
    case 'lost':
      // Report to BullMQ that the job was moved, because the job has a new owner.
      throw new WaitingError()
  }
}

/**
 * Returns the error that tells BullMQ of a failed attempt. BullMQ's events and telemetry say what becomes of the job, and another
 * backend than Bullpen's does what BullMQ decides. Therefore, the job in memory gets options by which BullMQ decides the same. The
 * stored options do not change.
 */
function failure(job: Job, { verdict, record, error }: AttemptResult, stack: string): Error {
  const about = { cause: error, stack }
  job.opts.stackTraceLimit = MAX_ATTEMPT_RECORDS
  if (verdict.kind !== 'retrying') return Object.assign(new UnrecoverableError(describeEnd(record)), about)
  job.opts.attempts = Math.max(job.opts.attempts ?? 0, job.attemptsMade + 2)
  job.opts.backoff = { type: 'fixed', delay: verdict.delayMs }
  return Object.assign(new Error(describeEnd(record)), about)
}

/** Throttles the job's queue or concurrency key, if its handler has asked for that. */
async function throttleFor(job: Job, { throttleMs, throttled }: Extract<Verdict, { kind: 'requeued' }>): Promise<void> {
  if (throttleMs === undefined) return
  await (throttled === 'concurrencyKey' ? throttleKeyOf(job, throttleMs) : throttleQueue(job, throttleMs))
}

/**
 * Settles the commit when Redis has replied. If the backend's replies can't be seen, the commit counts as confirmed as soon as
 * BullMQ has received it. `stack` begins with the record of the attempt, unless it has completed the task.
 */
export function settleWhenAnswered(
  job: Job,
  result: AttemptResult,
  token: string,
  { settled, attempts, events, onFollowed }: Pick<CommitHost, 'settled' | 'attempts' | 'events' | 'onFollowed'>,
  { rule, stack = '' }: { readonly rule?: string | undefined; readonly stack?: string } = {},
): void {
  const { verdict, record, error } = result
  const { id, fencingToken } = result.event
  const { followed, group, run } = (job.data ?? {}) as Partial<Envelope>
  const isMember = group !== undefined || run !== undefined
  const isMarked = followed === true || isMember || result.hasRegistered === true || result.followUps !== undefined
  const isFollowed = isMarked && ENDS.has(verdict.kind)
  const commit = {
    id,
    token,
    fencingToken,
    verdict: verdict.kind,
    delayMs: 'delayMs' in verdict ? verdict.delayMs : undefined,
    reason: FAILURES.has(verdict.kind) ? describeEnd(record) : undefined,
    stacks: stack === '' ? undefined : JSON.stringify([...(job.stacktrace ?? []), stack].slice(-MAX_ATTEMPT_RECORDS)),
    rule,
    budget: attempts.count(result),
    events: events.close(job, result),
    followUps: result.followUps,
    calls: result.calls && encodeCalls(result.calls, Math.random),
    survival: result.survival,
    kind: verdict.kind === 'dead' ? errorKind(record, error, sha256) : undefined,
    settled(refusal?: CommitRefusal) {
      settled(result, refusal)
      if (isFollowed && refusal === undefined) onFollowed?.()
    },
  }
  const backend = bullpenBackendOf(job)
  if (backend === undefined) settled(result)
  else backend.expectEnd(commit)
}

/** The verdicts that end a task. */
const ENDS: ReadonlySet<Verdict['kind']> = new Set(['completed', 'dead', 'cancelled', 'expired'])

/** The verdicts on a failed attempt. */
const FAILURES: ReadonlySet<Verdict['kind']> = new Set(['retrying', 'dead', 'cancelled', 'expired'])

/**
 * Calls `settled` when Redis has replied to the script with which BullMQ fails a job that it does not start again. The script adds
 * `events`, if there are any.
 */
export function settleRefusedStart(
  job: Job,
  events: string | undefined,
  settled: (refusal?: CommitRefusal) => void,
): void {
  bullpenBackendOf(job)?.expectEnd({
    id: job.id ?? '',
    token: job.token ?? '',
    fencingToken: job.attemptsStarted,
    verdict: 'dead',
    events,
    settled,
  })
}

/** Returns why BullMQ fails the job without starting it again. A job of a flow can also be failed because of its children. */
export function deathOf({ stalledCounter }: Job): TaskDeath {
  return stalledCounter > 0 ? 'process_lost' : 'unexpected_error'
}

/** Builds the result that BullMQ stores as JSON. */
function storedSuccess(
  output: unknown,
  { worker, slot }: AttemptRecord,
  codec: PayloadCodec | undefined,
): StoredSuccess {
  const stored = codec === undefined ? output : encodePayload(output, codec)
  return {
    output: stored,
    ...(codec !== undefined && stored !== undefined && { encoded: true as const }),
    worker,
    ...(slot !== undefined && { slot }),
  }
}

/**
 * Returns a task that was fetched but can't be started to the head of its queue, as if it had not been fetched. Calls `released`
 * when Redis has confirmed the release. If Redis has run the script but the reply was lost, the script is sent again and refused.
 * `released` is then not called, because the job does not store anything that distinguishes this release from another owner's.
 */
export async function release(job: Job, token: string, released: () => void): Promise<never> {
  bullpenBackendOf(job)?.expectEnd({ id: job.id ?? '', token, verdict: 'released' })
  return requeue(job, token, released)
}

/**
 * Works like {@link release}, but the task waits for `delayMs`, and then returns to the head of its queue. Meanwhile, it is in the
 * delayed set, so that no worker fetches it.
 */
export async function postpone(job: Job, token: string, delayMs: number, released: () => void): Promise<never> {
  const { id = '' } = job
  bullpenBackendOf(job)?.expectEnd({ id, token, verdict: 'postponed' })
  const moved = backendOf(job).moveToDelayed(id, Date.now(), delayMs, token, { skipAttempt: true })
  await unlessRefused(Promise.resolve(moved).then(released))
  throw new DelayedError()
}

/**
 * Returns the job to the head of its queue, in one script, and calls `moved` unless Redis has refused the move. BullMQ does not
 * count this as an attempt.
 */
async function requeue(job: Job, token: string, moved = (): void => {}): Promise<never> {
  await unlessRefused(job.moveToWait(token).then(moved))
  throw new WaitingError()
}

/** Awaits a move. If Redis refuses the move, the task no longer belongs to this worker, and BullMQ must not try another move. */
async function unlessRefused(moved: Promise<unknown>): Promise<void> {
  try {
    await moved
  } catch (error) {
    // BullMQ's own refusals have a numeric code, and connection errors have a string.
    if (!(error instanceof Error && 'code' in error && typeof error.code === 'number')) throw error
  }
}

/** Returns the job to its queue after a delay, in one script, without counting an attempt. */
async function snooze(delayMs: number, job: Job, token: string): Promise<never> {
  await unlessRefused(backendOf(job).moveToDelayed(job.id ?? '', Date.now(), delayMs, token, { skipAttempt: true }))
  throw new DelayedError()
}
