// Gathers the moves that one Worker asks for, each of which ends an attempt, starts a task, or both, into calls of the script that makes
// them.
//
// The script makes the moves one after the other, and replies for each of them. An error in one move is that move's own. If the whole call
// fails, so does each of its moves. ioredis sends a call again whose reply was lost, and marks it: the script then recognises the ends that
// it has stored, and replies with the tasks that it has started, which only this Worker could run. In a cluster, where each call would be
// marked, and on BullMQ's own client, which marks none, such tasks stay locked until their locks end, and are then recovered.
//
// If Redis refuses all writes for a while, as it does while it lacks replicas, a call with ends is sent again until Redis accepts it or the
// locks of its tasks have ended. Otherwise, these tasks would run again.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Candidates } from '@bullpen/engine/internal'
import type { QueueBaseOptions, RedisQueueBackend, WorkerOptions } from 'bullmq'
import { ReplyError } from 'ioredis'
import type { ReplyClock } from '../clock/reply-clock.ts'
import { isRefusedForNow } from '../redis/outages/error-replies.ts'
import { isCluster } from '../redis/redis-client.ts'
import { scriptCall } from '../redis/script-calls.ts'
import { type Commander, defineOn, runScriptOnClient } from '../scripts/script.ts'
import { endArguments, type ScriptEnd, type Value } from './attempt-end.ts'
import { createBatcher } from './batcher.ts'
import { endAndStartScript } from './scripts.ts'

/** The reply for one start (lua/includes/start/task-start.lua). */
export type StartReply = [job: readonly string[] | 0, id: string | 0, rateLimitMs: number, nextDue: number]

/** The reply for one move, whose code may be the message of an error (lua/end-and-start.lua). */
export type MoveReply = readonly [code: number | string, start: StartReply | 0 | 'later']

export interface Move {
  /** The token of the lock of the task that ends, and of the one that starts. '0' stands for no lock. */
  readonly token: string
  /** Whether a task may start, if the end is carried out. */
  readonly starts: boolean
  readonly end: ScriptEnd | undefined
}

export interface Moved {
  /** The script's code for the end, or 0. */
  readonly code: number
  /** The reply for the start, 0 if there is none, or 'later' if the replies of the batch were too large for another task. */
  readonly start: StartReply | 0 | 'later'
  /** The time of the move. */
  readonly at: number
}

/** What BullMQ's backend for Redis knows about its Worker. The property is protected in BullMQ's types. */
export interface Owner {
  readonly opts: QueueBaseOptions & Partial<WorkerOptions>
  readonly closing: Promise<void> | undefined
}

export interface MoveBatchOptions {
  readonly owner: Owner
  readonly now: () => number
  /** See `MovesOptions` (./moves.ts). */
  readonly learn: ReplyClock['learn'] | undefined
  readonly commands: Commander | undefined
  readonly candidates: Candidates | undefined
}

interface Call extends Move {
  readonly args: readonly Value[]
  readonly bytes: number
  readonly resolve: (moved: Moved) => void
  readonly reject: (error: unknown) => void
}

/** Returns a function that makes a move. A Worker that is closing starts nothing. */
export function gatherMoves(backend: RedisQueueBackend, options: MoveBatchOptions): (move: Move) => Promise<Moved> {
  const { owner, now, learn } = options
  const send = senderOf(backend, options.commands)

  const sendOnce = async (calls: readonly Call[]) => {
    const sentAt = performance.now()
    const time = learn === undefined ? now() : ''
    const args = startOptions(options, calls)
    for (const { token, starts, end, args: ofEnd } of calls) {
      args.push(token, starts && !owner.closing ? '1' : '', end?.id ?? '', ...ofEnd)
    }
    const replies = await send(time, calls.length, args)
    if (time !== '') return { at: time, replies }
    const at = Number(replies[calls.length]?.[0])
    learn?.(at, sentAt)
    return { at, replies }
  }

  const enter = createBatcher<Call>(async (calls) => {
    try {
      const lockMs = calls.some(({ end }) => end !== undefined) ? (owner.opts.lockDuration ?? 0) : 0
      const { at, replies } = await untilAccepted(() => sendOnce(calls), lockMs)
      for (const [i, { resolve, reject }] of calls.entries()) {
        const [code, start] = replies[i] ?? ['the script has not replied for this move', 0]
        if (typeof code === 'number') resolve({ code, start, at })
        else reject(new ReplyError(code))
      }
    } catch (error) {
      for (const { reject } of calls) reject(error)
    }
  })

  return ({ token, starts, end }) =>
    new Promise((resolve, reject) => {
      const args = end === undefined ? NOTHING : endArguments(end)
      enter({ token, starts, end, args, bytes: sizeOf(args), resolve, reject })
    })
}

/** Calls again while Redis refuses writes for now, and for at most `withinMs`. */
async function untilAccepted<Reply>(send: () => Promise<Reply>, withinMs: number): Promise<Reply> {
  const deadline = performance.now() + withinMs
  for (;;) {
    try {
      return await send()
    } catch (error) {
      if (!isRefusedForNow(error) || performance.now() > deadline) throw error
      await sleep(REFUSED_PAUSE_MS)
    }
  }
}

const REFUSED_PAUSE_MS = 100

const NOTHING: readonly Value[] = Object.freeze([])

/** Returns the arguments that are the same for all starts of a batch. Only one that starts tasks asks for candidates. */
function startOptions({ owner, candidates }: MoveBatchOptions, calls: readonly Call[]): Value[] {
  const { lockDuration, name, limiter } = owner.opts
  const mayStart = candidates !== undefined && calls.some(({ starts }) => starts)
  const only = mayStart ? candidatesArgument(candidates.next()) : ''
  return [lockDuration ?? '', name ?? '', limiter?.max ?? '', limiter?.duration ?? '', only]
}

/**
 * The candidates of a consumer as the script's argument. It begins with a blank, so that a consumer that has none at the moment takes
 * nothing.
 */
function candidatesArgument(ids: readonly string[]): string {
  return ` ${ids.join(' ')}`
}

function sizeOf(args: readonly Value[]): number {
  let size = 0
  for (const arg of args) if (typeof arg === 'string') size += arg.length
  return size
}

/** Sends the script with these moves, which begin with the options of the starts. */
type Send = (time: Value, count: number, more: readonly Value[]) => Promise<readonly MoveReply[]>

/** How many arguments of the script have names, and how many of these are the options of the starts. */
const NAMED = endAndStartScript.args.length
const START_OPTIONS = 5

function senderOf(backend: RedisQueueBackend, commands: Commander | undefined): Send {
  const base = backend.toKey('')
  const any = `${base}wait`
  if (commands === undefined) {
    return async (time, count, [lockMs = '', worker = '', ownMax = '', ownPerMs = '', candidates = '', ...moves]) => {
      const args = { base, time, count, length: moves.length + NAMED, lockMs, worker, ownMax, ownPerMs, candidates }
      return runScriptOnClient(await backend.client, endAndStartScript, { any }, args, moves)
    }
  }
  defineOn(commands, endAndStartScript)
  const call = scriptCall(commands, { ...endAndStartScript, marksRepeats: !isCluster(commands) })
  const rest = NAMED - START_OPTIONS
  return (time, count, more) =>
    call([any, base, time, count, more.length + rest, ...more]).then(endAndStartScript.answer)
}
