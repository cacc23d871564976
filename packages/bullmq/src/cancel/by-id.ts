// Cancels one task by its id.
//
// The protocol:
//   1. One script decides what to do, depending on where the task is. If no worker has the task (it is waiting or delayed, and not
//      locked), the script ends it at once, stores the attempt record, and does not count an attempt
//      (store/lua/includes/end/end-without-run.lua). A task that has already ended is not changed. The caller receives the reply
//      `cancelled` or `already_ended`, or `not_found` if there is no such task.
//   2. Any other task that has not ended counts as running, even if its worker was lost. The script stores the task's id and the
//      requester in the hash `cancelling`, and publishes both on the queue's cancel channel. The caller receives the reply
//      `cancelling`. If several callers cancel the task, only the first one is recorded. If a request is sent again within a
//      minute, the script returns the stored reply.
//   3. Every consumer of the queue is subscribed to that channel (`openCancelSubscriber`). The consumer that runs the task aborts
//      its attempt, and the verdict is `cancelled` whatever the retry policy says. If the attempt is short or is already being
//      committed, the consumer does nothing. A consumer that is not running the task remembers the task's id for ten seconds,
//      because it may be about to receive the task (at most 1,000 ids; remembered-cancels.ts). The task then ends before its
//      handler starts. If the attempt has just ended with a retry, step 4 ends the waiting task.
//   4. The leader repeats the stored requests every 1.5 s, in case a worker was cut off or restarting when the id was published.
//      The script removes a request once its task has ended.
//
// A task that is dead in spite of a cancel can be retried by request at once. The cancel must not end the retried task: the retry
// removes the stored request, a repeated request that is no longer stored does nothing, and the published message names the run of
// the task by the time of its last retry, which the consumers compare with the task that they have.
//
// A short task can't be stopped once it is running. Its `stoppable` is therefore false, no request is stored, and the caller
// receives the reply `not_cancellable`.
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Log, TaskId } from '@bullpen/contract'
import type { CancelAnswer } from '@bullpen/contract/internal'
import type { CancelCause, FetchedTask } from '@bullpen/engine/internal'
import { endOf } from '../codec.ts'
import type { QueueKeys } from '../keys.ts'
import { retryDelay } from '../redis/redis-client.ts'
import { openSubscriber } from '../redis/subscriber.ts'
import { pairsOf } from '../scripts/pairs.ts'
import { pauseAfterPage } from '../scripts/pause-after-page.ts'
import { runUntilAnswered } from '../scripts/run-until-answered.ts'
import { type Commander, runScript } from '../scripts/script.ts'
import { cancelTaskScript, readCancelReplyScript } from '../store/scripts.ts'
import { createRememberedCancels } from './remembered-cancels.ts'

/** How long the reply to a cancellation is kept for a repeated request, in ms (cancel-task.lua). */
export const CANCEL_REPLY_KEPT_MS = 60_000

export interface CancelReply {
  readonly answer: CancelAnswer
  /** The name of the task, if the script has cancelled it; otherwise ''. */
  readonly task: string
}

export interface CancelRequest {
  /** A new id for each cancellation. If the script is sent again with the same id, the reply is the same. */
  readonly request: string
  readonly id: TaskId
  /** Whether a worker that is running the task can stop it. */
  readonly stoppable: boolean
  /** Milliseconds since 1970. */
  readonly now: number
  /** Who requested the cancellation, for the attempt record; '' if unknown. */
  readonly by: string
  /** For the attempt record: the process that ends the task if no worker has it. */
  readonly process: string
  /** Whether the leader repeats a stored request, so that nothing is done if the request is no longer stored. Defaults to false. */
  readonly repeats?: boolean
}

/**
 * Cancels a task. The call is atomic and takes one round trip. If the connection is lost before the reply arrives, the client
 * sends the script again and gets the same reply.
 */
export async function cancelById(redis: Commander, keys: QueueKeys, request: CancelRequest): Promise<CancelReply> {
  const { names, args } = cancelCommand(keys, request)
  const [answer, task] = await runScript(redis, cancelTaskScript, names, args)
  return { answer, task }
}

function cancelCommand(keys: QueueKeys, cancel: CancelRequest) {
  const { request, id, stoppable, now, by, process, repeats = false } = cancel
  const end = endOf('cancelled', { process, by: by === '' ? undefined : by })
  return {
    names: { ...keys, job: keys.job(id), cancelReply: keys.cancelReply(request) },
    args: {
      base: keys.base,
      id,
      now,
      stoppable: stoppable ? 1 : 0,
      channel: keys.cancelChannel,
      by,
      request,
      repeats: repeats ? 1 : 0,
      ...end,
    },
  }
}

export type OnEnded = (ended: { readonly id: TaskId; readonly task: string }) => void

/**
 * Calls `onEnded` if a request has cancelled its task although the request's caller received no reply. Queries Redis until it
 * replies, for at most a minute, and never rejects. If the client sends the lost request again, it does so before this function's
 * first query.
 */
export async function reportLateEnd(
  redis: Commander,
  keys: QueueKeys,
  { id, request }: Pick<CancelRequest, 'id' | 'request'>,
  onEnded: OnEnded,
): Promise<void> {
  const until = performance.now() + CANCEL_REPLY_KEPT_MS
  for (let failures = 0; redis.status !== 'end' && performance.now() < until; failures++) {
    await sleep(retryDelay(failures), undefined, { ref: false })
    const names = { cancelReply: keys.cancelReply(request) }
    const reply = await runScript(redis, readCancelReplyScript, names, { request }).catch(() => 'no reply' as const)
    if (reply === 'no reply') continue
    if (reply?.[0] === 'cancelled') onEnded({ id, task: reply[1] })
    return
  }
}

/** The approximate number of stored requests that are read at a time. */
const REQUESTS_PER_PAGE = 100

export interface RepeatOptions extends Pick<CancelRequest, 'now' | 'process'> {
  /** Returns whether to stop after the current page. By default, all pages are processed. */
  readonly isOver?: () => boolean
  /** Called once for each task that a repeated request ended, when Redis has confirmed the end. */
  readonly onEnded: OnEnded
}

/**
 * Repeats the requests whose tasks have not ended. Takes one round trip to read a hundred requests, and one round trip to repeat each of
 * them.
 */
export async function repeatCancels(
  redis: Commander,
  keys: QueueKeys,
  { now, process, onEnded, isOver = () => false }: RepeatOptions,
): Promise<void> {
  const repeat = async (request: Pick<CancelRequest, 'id' | 'by'>): Promise<void> => {
    const ids = { ...request, request: randomUUID() }
    const { names, args } = cancelCommand(keys, { ...ids, stoppable: true, now, process, repeats: true })
    const [answer, task] = await runUntilAnswered(redis, cancelTaskScript, names, args)
    if (answer === 'cancelled') onEnded({ id: request.id, task })
  }
  for (let cursor = '0'; ; ) {
    const sentAt = performance.now()
    const [next, requests] = await redis.hscan(keys.cancelling, cursor, 'COUNT', REQUESTS_PER_PAGE)
    await Promise.all(pairsOf(requests).map(([id, by]) => repeat({ id: id as TaskId, by })))
    if (next === '0' || isOver()) return
    cursor = next
    await pauseAfterPage(sentAt)
  }
}

export interface CancelSubscriber {
  /**
   * If a cancellation of this task arrived before the task and within the last ten seconds, returns who requested it ('' if
   * unknown). Otherwise, or if the task was retried by request since, returns undefined. Each cancellation is returned only once.
   */
  cancelledBy(task: Pick<FetchedTask, 'id' | 'envelope'>): string | undefined
  close(): void
}

export interface CancelSubscriberOptions {
  readonly redisUrl: string
  readonly keys: QueueKeys
  /**
   * Cancels a running task. Returns false if the task is not running here. `by` is who requested the cancellation, or '' if
   * unknown. `retriedAt` identifies the run of the task, as in {@link ConsumerHost.cancel}.
   */
  readonly cancel: (id: TaskId, by: string, retriedAt: number) => boolean
  /** Called when there may be a new cancel rule. */
  readonly onRulesChanged: () => void
  readonly log: Log
}

/** Returns the cause of a cancellation. `by` is the published name of the requester, or '' if unknown. */
export function causeOf(by: string): CancelCause {
  return { reason: 'cancelled', by: by === '' ? undefined : by }
}

export function openCancelSubscriber(options: CancelSubscriberOptions): CancelSubscriber {
  const { redisUrl, keys, cancel, onRulesChanged, log } = options
  const notRunningHere = createRememberedCancels()
  const onCancel = (message: string): void => {
    const [id = '', retried, ...words] = message.split(' ')
    const [retriedAt, by] = [Number(retried), words.join(' ')]
    if (!cancel(id as TaskId, by, retriedAt)) notRunningHere.add(id, { by, retriedAt }, performance.now())
  }
  const subscriber = openSubscriber({
    redisUrl,
    channels: [keys.cancelChannel, keys.cancelRulesChannel],
    onMessage(channel, message) {
      if (channel === keys.cancelRulesChannel) onRulesChanged()
      else onCancel(message)
    },
    // If a cancel by id was missed, the leader repeats it.
    onSubscribed: onRulesChanged,
    log,
  })
  return {
    cancelledBy: (task) => notRunningHere.take(task, performance.now()),
    close: subscriber.close,
  }
}
