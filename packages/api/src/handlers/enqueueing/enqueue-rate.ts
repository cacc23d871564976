// Charges what a request stores and implies to the rates of its API key, before anything is stored.
//
// The rate over all queues is that of this process's tokens (EnqueueRates), and its tokens are never given back. The rate in a queue is
// exact: tokens that nothing was stored for are given back. A request that names no follow-ups of its tasks takes no token in advance,
// because the script that adds a task also takes its token. In a queue in which the request implies further tasks, such as follow-ups,
// all of the request's tokens are taken first, including those of the tasks that it adds there.
import { BullpenError, type Catalogue, EnqueueRateError } from '@bullpen/contract'
import { withoutEffect } from '@bullpen/contract/internal'
import type { GiveBack, NewTask, QueueTokens } from '@bullpen/engine'
import type { FastifyRequest } from 'fastify'
import type { ApiContext } from '../../http/context.ts'
import { mayHaveTakenEffect } from '../../http/problems/problem.ts'

/** A task that takes a token in its queue, and one for each of its follow-ups in theirs. */
export interface ChargedTask {
  readonly queue: string
  readonly task: string
  /** The queue of each follow-up that the request has named for the task, at any depth. By default, there are none. */
  readonly followUpQueues?: readonly string[]
}

export interface ChargedTasks {
  /** The tasks that the broker charges in their queues when it adds them. */
  readonly added?: readonly ChargedTask[]
  /** All other tasks, such as members of a group. */
  readonly implied?: readonly ChargedTask[]
  /**
   * Returns whether an earlier request has stored all of them, so that the request stores nothing. Only called if a queue has too few
   * tokens. By default, the request is refused then.
   */
  readonly isRepeat?: () => Promise<boolean>
}

/** What a request has taken in queues. */
export interface Charge {
  /** Returns the task as it is to be added: if its token has been taken, the broker must not take another one. */
  paid(task: NewTask): NewTask
  /**
   * Notes that these tasks are stored, or may be. The tokens of all others are given back once the request has been
   * carried out. Noting a task again changes nothing.
   */
  keep(tasks: readonly ChargedTask[]): void
}

/**
 * Takes the tokens of a request and then stores what it asks for. Gives back the tokens in queues that `store` does not keep, unless it
 * rejects with an error after which something may be stored. Counts the tasks that a rate refuses.
 *
 * If a queue in which tasks are implied limits the rate of the API key, takes one round trip for each such queue, and one more for each to
 * give tokens back. Otherwise takes none, except that the tokens over all queues may take one. Taking tokens is atomic in each queue only;
 * see `Broker.takeInQueues`.
 *
 * @throws EnqueueRateError if a rate is exceeded, even by a request that repeats an earlier one, unless `isRepeat` recognises it. Nothing
 * has been stored.
 * @throws BullpenError `payload_too_large` if a rate never permits this many tasks at once, or `redis_unavailable`.
 */
export function keepToRate<T>(
  context: ApiContext,
  { apiKeyName }: FastifyRequest,
  charged: ChargedTasks,
  store: (charge: Charge) => Promise<T>,
): Promise<T> {
  const wanted = wantedInQueues(context.catalogue, charged)
  const taking = takeTokens(context, apiKeyName, charged, wanted)
  if (taking === undefined) return store(NO_CHARGE)
  return taking.then((giveBack) => (giveBack === undefined ? store(NO_CHARGE) : storeCharged(wanted, giveBack, store)))
}

/** Counts tasks that a rate has refused. */
export function countRefused({ emit }: ApiContext, tasks: readonly ChargedTask[]): void {
  for (const { queue, task } of tasks) {
    emit({ event: 'task.refused', queue, task, limit: 'enqueueRate', action: 'rejected' })
  }
}

const NO_TASKS: readonly ChargedTask[] = []
const NO_CHARGE: Charge = { paid: (task) => task, keep: () => {} }

/** Returns a token's queue for each token that a task needs. */
function tokensOf({ queue, followUpQueues = [] }: ChargedTask): readonly string[] {
  return [queue, ...followUpQueues]
}

/** Returns the tokens that must be taken in advance. A queue that is not in the catalogue has no limits that this API knows. */
function wantedInQueues(catalogue: Catalogue, { added = NO_TASKS, implied = NO_TASKS }: ChargedTasks): QueueTokens[] {
  const isPlain = implied.length === 0 && added.every(({ followUpQueues = [] }) => followUpQueues.length === 0)
  if (isPlain) return []
  const tokens = Map.groupBy([...added, ...implied].flatMap(tokensOf), (queue) => queue)
  const queues = new Set([...implied.flatMap(tokensOf), ...added.flatMap(({ followUpQueues = [] }) => followUpQueues)])
  return [...queues].flatMap((queue) =>
    catalogue.queues.includes(queue)
      ? [{ queue, limits: catalogue.queue(queue).limits, tokens: tokens.get(queue)?.length ?? 0 }]
      : [],
  )
}

/** Returns undefined, or resolves with undefined, if no tokens were taken in queues. */
function takeTokens(
  context: ApiContext,
  apiKeyName: string | undefined,
  { added = NO_TASKS, implied = NO_TASKS, isRepeat = async () => false }: ChargedTasks,
  wanted: readonly QueueTokens[],
): Promise<GiveBack | undefined> | undefined {
  const refuse = (error: unknown): never => {
    if (error instanceof EnqueueRateError) countRefused(context, [...added, ...implied])
    // Nothing has been sent to Redis for the tasks.
    throw withoutEffect(error)
  }
  const needNone = async (error: unknown): Promise<undefined> => {
    if (!(error instanceof EnqueueRateError && (await isRepeat()))) throw error
  }
  const takeInQueues = () =>
    apiKeyName === undefined || wanted.length === 0
      ? undefined
      : context.broker.takeInQueues(apiKeyName, wanted)?.catch(needNone)
  const tokens = countTokens(added) + countTokens(implied)
  try {
    const taking = tokens === 0 ? undefined : context.rates.take(apiKeyName ?? '', tokens)
    return (taking === undefined ? takeInQueues() : taking.then(takeInQueues))?.catch(refuse)
  } catch (error) {
    return refuse(error)
  }
}

function countTokens(tasks: readonly ChargedTask[]): number {
  return tasks.reduce((sum, { followUpQueues = [] }) => sum + 1 + followUpQueues.length, 0)
}

async function storeCharged<T>(
  wanted: readonly QueueTokens[],
  giveBack: GiveBack,
  store: (charge: Charge) => Promise<T>,
): Promise<T> {
  const unused = new Map(wanted.map(({ queue, tokens }) => [queue, tokens]))
  const kept = new Set<ChargedTask>()
  const charge: Charge = {
    paid: (task) => (unused.has(task.queue) ? { ...task, hasToken: true } : task),
    keep(tasks) {
      const further = tasks.filter((task) => !kept.has(task))
      for (const task of further) kept.add(task)
      for (const queue of further.flatMap(tokensOf)) {
        const tokens = unused.get(queue)
        if (tokens !== undefined) unused.set(queue, tokens - 1)
      }
    },
  }
  try {
    return await store(charge)
  } catch (error) {
    if (!(error instanceof BullpenError) || mayHaveTakenEffect(error)) unused.clear()
    throw error
  } finally {
    await giveBack(unused)
  }
}
