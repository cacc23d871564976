// Collects what the attempts of one consumer report, and sends it in batches.
//
// A handler never waits for an event. What its attempt has reported is sent with that of all other attempts, at most every 50 ms
// and only if the last batch was confirmed, so that an outage of Redis holds back no more than the attempts' latest events. What
// has not been sent when the attempt ends goes with the script that commits its verdict, before the event of the end. The batches
// use the connection of the commits, so that Redis receives everything in order.
import type { EventBody } from '@bullpen/contract/internal'
import {
  type AttemptEvents,
  type AttemptResult,
  aboutStored,
  type TaskDeath,
  verdictEvent,
} from '@bullpen/engine/internal'
import type { Job } from 'bullmq'
import { BULLPEN_OPTION } from '../internals/worker/foreign-job.ts'

/** How long an event waits for others before they are sent, in ms. */
const FLUSH_MS = 50
/** The shortest time between two progress events of one attempt, in ms. If there are more reports, the latest one counts. */
const PROGRESS_MS = 250

/** The events of one attempt in one call of the script. */
export interface AttemptBatch {
  readonly id: string
  /** The token of the task's lock. */
  readonly token: string
  /** See ../store/lua/includes/task/task-events.lua. */
  readonly events: string
}

export interface EventBufferOptions {
  /** Sends a batch. If the promise rejects, the batch is lost. */
  readonly send: (batch: readonly AttemptBatch[]) => Promise<unknown>
  /** Returns the time in ms since 1970, by Redis's clock. */
  readonly now: () => number
  /** Defaults to 50. Tests set this. */
  readonly flushMs?: number
}

export interface EventBuffer {
  /** Returns what the job's attempt reports its events to, or undefined if the task has no events. */
  open(job: Job, token: string): AttemptEvents | undefined
  /**
   * Returns the events that the script adds which commits the attempt: those that have not been sent, and the verdict's. Returns
   * undefined if there are none. Nothing that the attempt reports later is sent.
   */
  close(job: Job, result: AttemptResult): string | undefined
  /** Returns the event that the script adds which ends the job because its workers died, or because a child of its flow failed. */
  death(job: Job, reason: TaskDeath): string | undefined
}

/** One attempt whose task has events. */
interface OpenAttempt {
  readonly id: string
  readonly token: string
  readonly count: number
  lines: { readonly text: string; readonly isProgress: boolean }[]
  progressSentAt: number
  isClosed: boolean
}

export function createEventBuffer({ send, now, flushMs = FLUSH_MS }: EventBufferOptions): EventBuffer {
  const attempts = new WeakMap<Job, OpenAttempt>()
  /** The attempts that have events to send. */
  const waiting = new Set<OpenAttempt>()
  let timer: NodeJS.Timeout | undefined
  let isSending = false

  const schedule = (): void => {
    if (timer !== undefined || isSending || waiting.size === 0) return
    timer = setTimeout(flush, flushMs).unref()
  }

  const flush = (): void => {
    timer = undefined
    const at = now()
    const batch = [...waiting].flatMap((attempt): readonly AttemptBatch[] => {
      const isHeld = ({ isProgress }: { readonly isProgress: boolean }): boolean =>
        isProgress && at - attempt.progressSentAt < PROGRESS_MS
      const sent = attempt.lines.filter((line) => !isHeld(line))
      attempt.lines = attempt.lines.filter(isHeld)
      if (sent.some(({ isProgress }) => isProgress)) attempt.progressSentAt = at
      if (attempt.lines.length === 0) waiting.delete(attempt)
      if (sent.length === 0) return []
      return [
        {
          id: attempt.id,
          token: attempt.token,
          events: joined(
            attempt.count,
            sent.map(({ text }) => text),
          ),
        },
      ]
    })
    if (batch.length === 0) {
      schedule()
      return
    }
    isSending = true
    const sent = (): void => {
      isSending = false
      schedule()
    }
    send(batch).then(sent, sent)
  }

  const report = (attempt: OpenAttempt, body: EventBody): void => {
    if (attempt.isClosed) return
    const isProgress = body.type === 'progress'
    if (isProgress) attempt.lines = attempt.lines.filter((line) => !line.isProgress)
    attempt.lines.push({ text: JSON.stringify(body), isProgress })
    waiting.add(attempt)
    schedule()
  }

  return {
    open(job, token) {
      const count = countOf(job)
      if (count === undefined) return undefined
      const attempt = { id: job.id ?? '', token, count, lines: [], progressSentAt: 0, isClosed: false }
      attempts.set(job, attempt)
      return { about: aboutJob(job), report: (body) => report(attempt, body) }
    },

    close(job, result) {
      const count = countOf(job)
      if (count === undefined) return undefined
      const attempt = attempts.get(job)
      const lines = attempt?.lines.map(({ text }) => text) ?? []
      if (attempt !== undefined) {
        attempt.isClosed = true
        attempt.lines = []
        waiting.delete(attempt)
      }
      const body = verdictEvent(aboutJob(job), result, now())
      return body === undefined ? undefined : joined(count, [...lines, verdictLine(body, result)])
    },

    death(job, reason) {
      const count = countOf(job)
      if (count === undefined) return undefined
      const { attempt: _, ...about } = aboutJob(job)
      const error = { code: reason, message: DEATHS[reason] }
      const body: EventBody = { type: 'ended', ...about, outcome: 'panicked', error, status: 'dead' }
      return joined(count, [JSON.stringify(body)])
    },
  }
}

const DEATHS: Readonly<Record<TaskDeath, string>> = {
  process_lost: 'the worker was lost',
  unexpected_error: 'a child of the flow failed',
}

function joined(count: number, lines: readonly string[]): string {
  return [count, ...lines].join('\n')
}

/** The script that delays a task sets the time itself, because a retry budget may make the delay longer. */
function verdictLine(body: EventBody, { verdict }: AttemptResult): string {
  const isDelayed = verdict.kind === 'snoozed' || (verdict.kind === 'retrying' && verdict.delayMs > 0)
  if (!isDelayed || !('dueAt' in body)) return JSON.stringify(body)
  const { dueAt: _, ...rest } = body
  return `${JSON.stringify(rest).slice(0, -1)},"dueAt":`
}

function aboutJob(job: Job): AttemptEvents['about'] {
  return { ...aboutStored(job.name, job.data), attempt: job.attemptsMade + 1, fencingToken: job.attemptsStarted }
}

/** Returns how many events the queue's stream keeps, or undefined if the task has no events, like a job that Bullpen did not add. */
function countOf({ data, opts }: Job): number | undefined {
  if (!(BULLPEN_OPTION in opts)) return undefined
  const count: unknown = typeof data === 'object' && data !== null && 'events' in data ? data.events : undefined
  return typeof count === 'number' && Number.isInteger(count) && count > 0 ? count : undefined
}
