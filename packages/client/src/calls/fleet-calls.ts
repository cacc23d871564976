// Implements the part of the client that shows and controls the fleet.
import {
  type CommandRequest,
  type CommandView,
  type Duration,
  type FleetView,
  type KeyOrder,
  type LimitsView,
  milliseconds,
  type PoolView,
  type QueuePage,
  type SlotState,
  type SlotView,
} from '@bullpen/contract'
import { COMMAND_WAIT_S, type Try } from '@bullpen/contract/internal'
import type { HttpTransport } from '../http/http-transport.ts'
import { queryText, waitQuery } from '../http/request-parts.ts'
import { isCommand, isCommandPage, isFleet, isLimits, isPoolPage, isQueuePage, isSlotPage } from '../http/responses.ts'
import type { Check } from '../http/shape.ts'
import { randomId } from '../random-id.ts'
import type { Repeat, SendRequest } from '../repetition.ts'
import type { Abortable } from '../task-handle.ts'
import { pollUntil } from './long-poll.ts'

/** A command for the fleet, which consists of an action, its target and its settings. */
export type FleetOrder = CommandRequest extends infer One
  ? One extends CommandRequest
    ? Omit<One, 'id' | 'by'>
    : never
  : never

interface CommandOptions extends Abortable {
  /** How long the API waits for every worker to respond, at most '30s'. Defaults to '5s'. */
  readonly wait?: Duration | 'none'
  /** Makes the command idempotent, because requests with the same id send the same command. Defaults to a random id. */
  readonly id?: string
  /** The name of the person or program that sends the command, for the audit log. */
  readonly by?: string
}

interface PoolFilter extends Abortable {
  readonly queue?: string
  readonly worker?: string
}

interface LimitsOptions extends Abortable {
  /** Shows only this concurrency key, without `sort` and `cursor`. */
  readonly concurrencyKey?: string
  /** `backlog` lists the keys with the most waiting tasks first, and `active` those with the most active ones. Defaults to `backlog`. */
  readonly sort?: KeyOrder
  /** How many keys to return, from 1 to 200. Defaults to 50. */
  readonly limit?: number
  /** `keys.next` of the previous page. */
  readonly cursor?: string
}

/** How long the API may take to measure the rates of the queues, in ms. */
const RATES_MS = 1_000

export interface FleetCalls {
  /**
   * Returns the queues and every worker with its pools, or only the given queue and its workers. Times come from Redis's clock.
   */
  fleet(options?: Abortable & { readonly queue?: string }): Promise<FleetView>
  /**
   * Returns each queue, or only the given one, with its tasks by status, the most frequent kinds of error among its dead tasks, its
   * oldest waiting task, its rates, limits and slots. The call takes 1 s if the API process has not measured the rates before.
   */
  queues(options?: Abortable & { readonly queue?: string }): Promise<QueuePage>
  /**
   * Returns the limits of a queue that are in force, and its concurrency keys with what keeps each from starting tasks. A page by backlog
   * examines all keys that have waiting tasks, at most 200,000, which takes Redis two commands for each of them.
   */
  limits(queue: string, options?: LimitsOptions): Promise<LimitsView>
  /** Returns the pools of live workers. */
  pools(options?: PoolFilter): Promise<readonly PoolView[]>
  /** Returns the slots of live workers, each with the task that it is running. */
  slots(options?: PoolFilter & { readonly state?: SlotState }): Promise<readonly SlotView[]>
  /**
   * Sends a command to the fleet. Resolves when every worker has responded or `wait` has elapsed. Check `outcome` to see which.
   * The client repeats a request that got no response, because its id makes it idempotent.
   */
  command(order: FleetOrder, options?: CommandOptions): Promise<CommandView>
  /**
   * Returns a command by its id. With `wait` (at most '30s'), waits until every worker has responded. By default, the call does
   * not wait.
   */
  commandById(id: string, options?: Pick<CommandOptions, 'wait' | 'signal'>): Promise<CommandView>
  /** Lists the commands, newest first. `limit` is a number from 1 to 200 and defaults to 50. */
  commands(options?: Abortable & { readonly limit?: number }): Promise<readonly CommandView[]>
}

/** `sendOnce` sends a request without repeating it. */
export function fleetCalls(send: SendRequest, repeat: Repeat, sendOnce: HttpTransport['send']): FleetCalls {
  const get = <T>(path: string, isExpected: Check<T>, signal: AbortSignal | undefined, waitMs = 0): Promise<T> =>
    send('look-up', { method: 'GET', path, waitMs, isExpected }, signal)

  return {
    async fleet({ signal, ...query } = {}) {
      return get(`v1/fleet${queryText(query)}`, isFleet, signal)
    },
    async queues({ signal, ...query } = {}) {
      return get(`v1/queues${queryText(query)}`, isQueuePage, signal, RATES_MS)
    },
    async limits(queue, { signal, ...query } = {}) {
      return get(`v1/queues/${encodeURIComponent(queue)}/limits${queryText(query)}`, isLimits, signal)
    },
    async pools({ signal, ...query } = {}) {
      return (await get(`v1/pools${queryText(query)}`, isPoolPage, signal)).pools
    },
    async slots({ signal, ...query } = {}) {
      return (await get(`v1/slots${queryText(query)}`, isSlotPage, signal)).slots
    },
    async command(order, { wait, id = randomId(), by, signal } = {}) {
      const forMs = wait === undefined ? COMMAND_WAIT_S * 1_000 : toMilliseconds(wait)
      const body = JSON.stringify({ ...order, id, by })
      const poll = (waitMs: number): Try<CommandView> => {
        const path = `v1/commands?wait=${waitMs / 1_000}`
        return (current) => sendOnce({ method: 'POST', path, body, waitMs, isExpected: isCommand }, current)
      }
      return pollUntil({ repeat, repeatability: 'idempotent', poll, isOver: isAnswered, forMs, signal })
    },
    async commandById(id, { wait = 'none', signal } = {}) {
      const poll = (waitMs: number): Try<CommandView> => {
        const path = `v1/commands/${encodeURIComponent(id)}${waitQuery(waitMs)}`
        return (current) => sendOnce({ method: 'GET', path, waitMs, isExpected: isCommand }, current)
      }
      return pollUntil({ repeat, poll, isOver: isAnswered, forMs: toMilliseconds(wait), signal })
    },
    async commands({ signal, limit } = {}) {
      return (await get(`v1/commands${queryText({ limit })}`, isCommandPage, signal)).commands
    },
  }
}

const isAnswered = ({ outcome }: CommandView): boolean => outcome !== 'pending'

function toMilliseconds(wait: Duration | 'none'): number {
  return wait === 'none' ? 0 : milliseconds(wait, 'wait')
}
