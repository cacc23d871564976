// BullMQ's backend over Bullpen's own script: the methods with which a Worker fetches jobs, and moves them out of the active ones.
import type { FinalStatus } from '@bullpen/contract'
import type { Candidates, Retention } from '@bullpen/engine/internal'
import {
  type IQueueBackend,
  type KeepJobs,
  type QueueBaseOptions,
  type RedisQueueBackend,
  raw2NextJobData,
  type WorkerOptions,
} from 'bullmq'
import { encodeKind, kindOfReason } from '../internals/status/stored-kind.ts'
import { scriptCall } from '../redis/script-calls.ts'
import { type Commander, defineOn, runScriptOnClient } from '../scripts/script.ts'
import {
  type AttemptEnd,
  endArguments,
  type PendingEnds,
  type ScriptEnd,
  settle,
  settleByError,
  takeEnd,
  type Value,
} from './attempt-end.ts'
import { endAndStartScript } from './scripts.ts'

/** The reply for one start (lua/includes/task-start.lua). */
export type StartReply = [job: readonly string[] | 0, id: string | 0, rateLimitMs: number, nextDue: number]

export interface MovesOptions {
  /** Returns the time in ms since 1970, by the clock that all of the queue's processes share. */
  readonly now: () => number
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

/** What BullMQ's backend for Redis knows about its Worker. The property is protected in BullMQ's types. */
interface Owner {
  readonly opts: QueueBaseOptions & Partial<WorkerOptions>
  readonly closing: Promise<void> | undefined
}

/** How one move is sent. The end that it carries out has been taken from those that are pending. */
type Sent = Omit<ScriptEnd, 'end'> & { readonly fetches: boolean }

/** Replaces the methods of a backend that fetch jobs and move active ones. */
export function replaceMoves(backend: RedisQueueBackend, options: MovesOptions): void {
  const { now, toMachine, retention, candidates, pending, prepare } = options
  const { queue: owner } = backend as unknown as { readonly queue: Owner }
  const send = senderOf(backend, options.commands)
  let ends = 0

  const startArguments = (token: string, name: string | undefined): Value[] => {
    const { lockDuration, limiter } = owner.opts
    const only = candidates === undefined ? '' : candidatesArgument(candidates.next())
    return [token, lockDuration ?? '', name ?? '', limiter?.max ?? '', limiter?.duration ?? '', only]
  }

  const started = (reply: StartReply | undefined): unknown[] => {
    if (reply === undefined) return []
    if (reply[3] > 0) reply[3] = toMachine(reply[3])
    return raw2NextJobData(reply)
  }

  /** Returns the script's reply for the end, the job that was fetched, and when the attempt ended. */
  const move = (command: string, end: AttemptEnd | undefined, { fetches, ...sent }: Sent) => {
    const at = now()
    const starts = fetches && !owner.closing ? startArguments(sent.token, owner.opts.name) : []
    const args = [...endArguments({ ...sent, end }), ...starts]
    return send(at, 1, starts.length === 0 ? 0 : 1, args).then(
      ([[code = 0], [next]]) => {
        if (end !== undefined) settle(end, code)
        if (code < 0) throw backend.finishedErrors({ code, jobId: sent.id, command, state: 'active' })
        return { code, result: started(next), at }
      },
      (error: unknown) => {
        if (end !== undefined) settleByError(pending, end, error)
        throw error
      },
    )
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

  const moves: Moves = {
    async moveToActive(token, name) {
      await prepare()
      const [, [next]] = await send(now(), 0, 1, startArguments(token, name))
      return started(next)
    },

    async moveToCompleted(job, returnValue, removeOnComplete, token, fetches) {
      const { id = '' } = job
      const end = takeEnd(pending, id, 'completed')
      const more = keptArguments('completed', keepOf(removeOnComplete, owner.opts.removeOnComplete))
      const value = JSON.stringify(returnValue) ?? 'null'
      const sent: Sent = { id, token, verdict: 'completed', value, more, fields: undefined, fetches }
      const { result, at } = await move('moveToFinished', end, sent)
      return { result, finishedOn: at }
    },

    async moveToFailed(job, failedReason = 'null', removeOnFail, token, fetches, fields) {
      const { id = '', opts } = job
      const end = takeEnd(pending, id, 'failed')
      // If Bullpen has not decided, BullMQ itself has failed the job, so the task is dead.
      const verdict = end === undefined ? 'dead' : (end.verdict as FinalStatus)
      const more = keptArguments(verdict, keepOf(removeOnFail, owner.opts.removeOnFail))
      more.push('maxAttempts', opts.attempts ?? 0)
      if (verdict === 'dead') more.push('fingerprint', encodeKind(end?.kind ?? kindOfReason(failedReason)))
      const sent: Sent = { id, token, verdict, value: failedReason, more, fields, fetches }
      const { result, at } = await move('moveToFinished', end, sent)
      return { result, finishedOn: at }
    },

    async moveToDelayed(id, _, value, token = '0', { skipAttempt, fieldsToUpdate: fields, fetchNext = false } = {}) {
      const end = takeEnd(pending, id, 'delayed')
      const uncounted = end?.verdict === 'postponed' ? 'postponed' : 'scheduled'
      const verdict = skipAttempt ? uncounted : 'retrying'
      const sent: Sent = { id, token, verdict, value, more: [], fields, fetches: fetchNext }
      const { result } = await move('moveToDelayed', end, sent)
      // As in BullMQ, the reply does not say why nothing was fetched.
      return result[0] === null ? [] : result
    },

    async retryJob(id, lifo, token = '0', { fieldsToUpdate: fields } = {}) {
      const end = takeEnd(pending, id, 'retried')
      const value = lifo ? 'head' : ''
      await move('retryJob', end, { id, token, verdict: 'retried', value, more: [], fields, fetches: false })
    },

    async moveJobFromActiveToWait(id, token = '0') {
      const end = takeEnd(pending, id, 'waiting')
      const verdict = end?.verdict === 'released' ? 'released' : 'requeued'
      const sent: Sent = { id, token, verdict, value: '', more: [], fields: undefined, fetches: false }
      return (await move('moveJobFromActiveToWait', end, sent)).code
    },
  }
  Object.assign(backend, moves)
}

type Moves = Pick<
  IQueueBackend,
  'moveToActive' | 'moveToCompleted' | 'moveToFailed' | 'moveToDelayed' | 'retryJob' | 'moveJobFromActiveToWait'
>

type Reply = ReturnType<typeof endAndStartScript.answer>

/** Sends the script, with how many attempts end and how many tasks may start, and the arguments of these. */
type Send = (time: number, ends: 0 | 1, starts: 0 | 1, more: readonly Value[]) => Promise<Reply>

function senderOf(backend: RedisQueueBackend, commands: Commander | undefined): Send {
  const base = backend.toKey('')
  const any = `${base}wait`
  if (commands === undefined) {
    return async (time, ends, starts, more) =>
      runScriptOnClient(await backend.client, endAndStartScript, { any }, { base, time, ends, starts }, more)
  }
  defineOn(commands, endAndStartScript)
  const call = scriptCall(commands, endAndStartScript)
  return (time, ends, starts, more) => call([any, base, time, ends, starts, ...more]).then(endAndStartScript.answer)
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

/**
 * The candidates of a consumer as the script's argument. It begins with a blank, so that a consumer that has none at the moment takes
 * nothing.
 */
function candidatesArgument(ids: readonly string[]): string {
  return ` ${ids.join(' ')}`
}
