// BullMQ's backend over Bullpen's own script: the methods with which a Worker fetches jobs, and moves them out of the active ones.
import type { FinalStatus } from '@bullpen/contract'
import type { Candidates, Retention } from '@bullpen/engine/internal'
import { type IQueueBackend, type KeepJobs, type RedisQueueBackend, raw2NextJobData } from 'bullmq'
import type { ReplyClock } from '../clock/reply-clock.ts'
import { encodeKind, kindOfReason } from '../internals/status/stored-kind.ts'
import type { Commander } from '../scripts/script.ts'
import {
  type AttemptEnd,
  type PendingEnds,
  type ScriptEnd,
  type ScriptVerdict,
  settle,
  settleByError,
  takeEnd,
  type Value,
} from './attempt-end.ts'
import { gatherMoves, type Moved, type Owner, type StartReply } from './move-batch.ts'

export interface MovesOptions {
  /** Returns the time in ms since 1970, by the clock that all of the queue's processes share. */
  readonly now: () => number
  /** If it is given, the script reads Redis's clock, and the function learns from its replies. Otherwise, the script is given `now`. */
  readonly learn: ReplyClock['learn'] | undefined
  /** Translates a time that BullMQ compares with the machine's clock. */
  readonly toMachine: (time: number) => number
  /** How long ended tasks are kept. */
  readonly retention: Retention
  /** The connection that sends the script, at less cost than BullMQ's own client. Both must use the same connection. */
  readonly commands: Commander | undefined
  readonly candidates: Candidates | undefined
  readonly pending: PendingEnds
  /** Resolves when a task may be fetched. */
  readonly prepare: () => Promise<void>
}

/**
 * How many attempts end between two removals of old tasks. Each removal deletes up to twice as many tasks, so that the number of
 * old tasks falls. The leader removes the rest. Looking for old tasks at every end would cost Redis 1 µs more for each task.
 */
export const ENDS_PER_REMOVAL = 8

/** How many jobs an end removes at once because of BullMQ's own options. */
const REMOVED_BY_OPTIONS = 1_000

/** What the script calls the verdicts on tasks that are delayed. */
const DELAYS: Readonly<Partial<Record<AttemptEnd['verdict'], ScriptVerdict>>> = {
  retrying: 'retrying',
  snoozed: 'scheduled',
  postponed: 'postponed',
}

type MoveMethods = Pick<
  IQueueBackend,
  'moveToActive' | 'moveToCompleted' | 'moveToFailed' | 'moveToDelayed' | 'retryJob' | 'moveJobFromActiveToWait'
>

export function moveMethods(backend: RedisQueueBackend, options: MovesOptions): MoveMethods {
  const { now, learn, toMachine, retention, commands, candidates, pending, prepare } = options
  const { queue: owner } = backend as unknown as { readonly queue: Owner }
  const make = gatherMoves(backend, { owner, now, learn, commands, candidates })
  // If the script reads Redis's clock, the jobs of the Worker show their times by the machine's, with which BullMQ compares them: it
  // renews a lock when enough time has passed since `processedOn`.
  const shown = learn === undefined ? (time: number): number => time : toMachine
  let ends = 0

  const started = (start: StartReply | 0): unknown[] => {
    if (start === 0) return []
    if (start[3] > 0) start[3] = toMachine(start[3])
    const next = raw2NextJobData(start)
    if (next[0] !== null) next[0].processedOn = shown(next[0].processedOn)
    return next
  }

  const fetchJob = async (token: string): Promise<unknown[]> => {
    const { start } = await make({ token, starts: true, end: undefined })
    return start === 'later' ? fetchJob(token) : started(start)
  }

  /**
   * Returns the script's reply for the end, the job that was fetched, and when the attempt ended. The end that the move carries out has
   * been taken from those that are pending. Every task takes this path, so it creates few objects.
   */
  const move = async (command: string, token: string, starts: boolean, end: ScriptEnd) => {
    const { id, end: attempt } = end
    let moved: Moved
    try {
      moved = await make({ token, starts, end })
    } catch (error) {
      if (attempt !== undefined) settleByError(pending, attempt, error)
      throw error
    }
    const { code, start, at } = moved
    if (attempt !== undefined) settle(attempt, code)
    if (code < 0) throw backend.finishedErrors({ code, jobId: id, command, state: 'active' })
    // The attempt has ended, whether or not another task can be fetched.
    const result = start === 'later' ? await fetchJob(token).catch(() => []) : started(start)
    return { code, result, at }
  }

  /** Tells the script which tasks are kept: those that BullMQ's own options keep and, in some ends, those of the retention. */
  const keptArguments = (status: FinalStatus, { count, age, limit }: Keep): Value[] => {
    const more: Value[] = []
    if (count !== undefined && count >= 0) more.push('keepCount', count)
    if (age !== undefined) more.push('keepAge', age)
    if (more.length > 0) more.push('keepLimit', limit ?? REMOVED_BY_OPTIONS)
    const minutes = owner.opts.metrics?.maxDataPoints
    if (minutes) more.push('metrics', minutes)
    if (++ends % ENDS_PER_REMOVAL !== 0) return more
    const kept = retention[status]
    if (kept?.ageMs !== undefined) more.push('keptSince', now() - kept.ageMs)
    if (kept?.count !== undefined) more.push('keptCount', kept.count)
    return more
  }

  return {
    async moveToActive(token) {
      await prepare()
      return fetchJob(token)
    },

    async moveToCompleted(job, returnValue, removeOnComplete, token, fetches) {
      const { id = '' } = job
      const end = takeEnd(pending, id, token, 'completed')
      const more = keptArguments('completed', keepOf(removeOnComplete, owner.opts.removeOnComplete))
      const value = JSON.stringify(returnValue) ?? 'null'
      const sent: ScriptEnd = { id, verdict: 'completed', value, end, more, fields: undefined }
      const { result, at } = await move('moveToFinished', token, fetches, sent)
      return { result, finishedOn: shown(at) }
    },

    async moveToFailed(job, failedReason = 'null', removeOnFail, token, fetches, fields) {
      const { id = '', opts } = job
      const end = takeEnd(pending, id, token, 'failed')
      // If Bullpen has not decided, BullMQ itself has failed the job, so the task is dead.
      const verdict = end === undefined ? 'dead' : (end.verdict as FinalStatus)
      const more = keptArguments(verdict, keepOf(removeOnFail, owner.opts.removeOnFail))
      more.push('maxAttempts', opts.attempts ?? 0)
      if (verdict === 'dead') more.push('fingerprint', encodeKind(end?.kind ?? kindOfReason(failedReason)))
      const sent: ScriptEnd = { id, verdict, value: end?.reason ?? failedReason, end, more, fields }
      const { result, at } = await move('moveToFinished', token, fetches, sent)
      return { result, finishedOn: shown(at) }
    },

    async moveToDelayed(id, _, value, token = '0', { skipAttempt, fieldsToUpdate: fields, fetchNext = false } = {}) {
      const end = takeEnd(pending, id, token, 'delayed')
      const verdict = (end && DELAYS[end.verdict]) ?? (skipAttempt ? 'scheduled' : 'retrying')
      const sent: ScriptEnd = { id, verdict, value: end?.delayMs ?? value, end, more: [], fields }
      const { result } = await move('moveToDelayed', token, fetchNext, sent)
      // As in BullMQ, the reply does not say why nothing was fetched.
      return result[0] === null ? [] : result
    },

    async retryJob(id, lifo, token = '0', { fieldsToUpdate: fields } = {}) {
      const end = takeEnd(pending, id, token, 'retried')
      const value = lifo ? 'head' : ''
      await move('retryJob', token, false, { id, verdict: 'retried', value, end, more: [], fields })
    },

    async moveJobFromActiveToWait(id, token = '0') {
      const end = takeEnd(pending, id, token, 'waiting')
      const verdict = end?.verdict === 'released' ? 'released' : 'requeued'
      const sent: ScriptEnd = { id, verdict, value: '', end, more: [], fields: undefined }
      return (await move('moveJobFromActiveToWait', token, false, sent)).code
    },
  }
}

interface Keep {
  readonly count?: number | undefined
  readonly age?: number | undefined
  readonly limit?: number | undefined
}

/** Returns which jobs BullMQ's options keep: those of the job or, if it has none, those of its Worker. */
function keepOf(ofJob: boolean | number | KeepJobs | undefined, ofWorker: KeepJobs | undefined): Keep {
  const wanted = ofJob ?? ofWorker
  if (typeof wanted === 'object') return wanted
  if (typeof wanted === 'number') return { count: wanted }
  return wanted === true ? { count: 0 } : {}
}
