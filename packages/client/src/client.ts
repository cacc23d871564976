// A typed client of the HTTP API: enqueue, look up, wait for results, list, and steer the fleet.
import {
  type Accepted,
  BullpenError,
  type CallOptions,
  type Cancellation,
  type Cancelled,
  type CancelRequest,
  type Duration,
  type InputOf,
  isFinal,
  type Limit,
  milliseconds,
  type OutputOf,
  type TaskDefinition,
  type TaskPage,
  type TaskStatus,
  type TaskView,
} from '@bullpen/contract'
import { MAX_WAIT_S } from '@bullpen/contract/internal'
import { type FleetCalls, fleetCalls } from './fleet-calls.ts'
import { TaskEndedError } from './task-ended-error.ts'
import { pauseFor, send } from './transport.ts'

export interface ClientOptions {
  /** Where the API is: `'http://127.0.0.1:8080'`; a path in front of `/v1` is kept. */
  readonly baseUrl: string | URL
  /** Sent as `Authorization: Bearer`. */
  readonly key: string
  /** Sent as X-Request-Id with every request; follows the tasks into the workers' logs. */
  readonly correlationId?: string
  /** For one try, on top of the time that it asks the API to wait. Default '10s'. */
  readonly requestTimeout?: Duration
  /** How long what is safe to repeat is repeated while the API can't be reached. Default '10s'. */
  readonly retryFor?: Duration
  /** Default: the global one, which keeps connections alive. */
  readonly fetch?: typeof globalThis.fetch
}

export interface EnqueueOptions extends CallOptions {
  readonly signal?: AbortSignal
}

interface Waiting {
  /** How long to wait in all. Default 'none'. */
  readonly timeout?: Limit
  readonly signal?: AbortSignal
}

interface Listing {
  readonly queue: string
  readonly status: TaskStatus
  /** Tasks for each request, 1 to 200. Default: the API's, 50. */
  readonly pageSize?: number
  readonly signal?: AbortSignal
}

/** What the API shows of a task, its input and output typed when the definition is given. As JSON: a Date is text. */
export type TaskOf<D extends TaskDefinition | undefined> = D extends TaskDefinition
  ? Omit<TaskView, 'task' | 'input' | 'output'> & {
      readonly task: D['name']
      readonly input: InputOf<D>
      readonly output?: OutputOf<D>
    }
  : TaskView

/** Every method rejects with {@link ProblemError} when the API refuses or is not reached, and with the signal's reason. */
export interface Client extends FleetCalls {
  /**
   * Hands a task over; resolves when it is stored. The API checks the input, not the client.
   *
   * A lost answer is not sent again: the API makes the ids, so the task might run twice. Repeated are only a refused
   * connection and a 503 that names no task. When the error has a `taskId`, look it up before enqueueing again.
   */
  enqueue<D extends TaskDefinition>(definition: D, input: InputOf<D>, options?: EnqueueOptions): Promise<Accepted>
  /** As {@link enqueue}, for programs that have no definition. `input` is what its JSON holds. */
  enqueueNamed(task: string, input: unknown, options?: EnqueueOptions): Promise<Accepted>
  /** The task as it stands. @throws TypeError when it is a task of another definition. */
  task<D extends TaskDefinition | undefined>(
    definition: D,
    id: string,
    options?: { readonly signal?: AbortSignal },
  ): Promise<TaskOf<D>>
  /**
   * The task once its status is final, whichever it is. Costs a request for each 30 s of waiting.
   *
   * @throws DOMException TimeoutError when `timeout` has passed; the task goes on.
   */
  waitUntilFinished<D extends TaskDefinition | undefined>(
    definition: D,
    id: string,
    options?: Waiting,
  ): Promise<TaskOf<D>>
  /** As {@link waitUntilFinished}, the output alone. @throws TaskEndedError when the task ended without one. */
  result<D extends TaskDefinition>(definition: D, id: string, options?: Waiting): Promise<OutputOf<D>>
  /**
   * Cancels a task. What waits ends at once; what runs is told, and `wait` (at most '30s', default none) waits for its end.
   * Twice is once.
   */
  cancel(id: string, options?: { readonly wait?: Duration; readonly signal?: AbortSignal }): Promise<Cancelled>
  /**
   * Cancels all tasks of a queue that fit what is given and were enqueued until now. When it resolves, none of them starts
   * any more and each is shown as cancelled; how far they are moved says {@link cancellation}. Takes up to 2.5 s when a
   * worker does not answer.
   */
  cancelMany(wanted: CancelRequest, options?: { readonly signal?: AbortSignal }): Promise<Cancellation>
  /** How far a cancel of many is; told until a day after it was done. */
  cancellation(id: string, options?: { readonly signal?: AbortSignal }): Promise<Cancellation>
  /** The tasks of a queue that have a status, page by page as they are asked for. */
  list(listing: Listing): AsyncGenerator<TaskView, void, void>
}

/** Between two waits that the API ended early, as it does when it shuts down. */
const BETWEEN_WAITS_MS = 100

/** @throws BullpenError `invalid_configuration` when `baseUrl` is not an http or https URL. */
export function createClient(options: ClientOptions): Client {
  const { key, correlationId, requestTimeout = '10s', retryFor = '10s' } = options
  const timeoutMs = milliseconds(requestTimeout, 'requestTimeout')
  const transport = {
    baseUrl: base(options.baseUrl),
    fetch: options.fetch ?? globalThis.fetch,
    retryForMs: milliseconds(retryFor, 'retryFor'),
    headers: {
      authorization: `Bearer ${key}`,
      accept: 'application/json',
      ...(correlationId === undefined ? {} : { 'x-request-id': correlationId }),
    },
  }

  async function lookUp(id: string, waitS: number, signal: AbortSignal | undefined): Promise<TaskView> {
    const path = `v1/tasks/${encodeURIComponent(id)}${waitS > 0 ? `?wait=${waitS}` : ''}`
    const answer = await send(transport, { method: 'GET', path, timeoutMs: timeoutMs + waitS * 1_000, signal })
    return answer as TaskView
  }

  const client: Client = {
    ...fleetCalls(transport, timeoutMs),

    enqueue: (definition, input, options) => client.enqueueNamed(definition.name, input, options),

    async enqueueNamed(task, input, { signal, ...call } = {}) {
      const body = { task, input, ...call }
      return (await send(transport, { method: 'POST', path: 'v1/tasks', body, timeoutMs, signal })) as Accepted
    },

    async task(definition, id, { signal } = {}) {
      return typed(definition, await lookUp(id, 0, signal))
    },

    async waitUntilFinished(definition, id, { timeout = 'none', signal: outer } = {}) {
      const signals = [
        ...(outer === undefined ? [] : [outer]),
        ...(timeout === 'none' ? [] : [AbortSignal.timeout(milliseconds(timeout, 'timeout'))]),
      ]
      const signal = signals.length < 2 ? signals[0] : AbortSignal.any(signals)
      for (;;) {
        const view = await lookUp(id, MAX_WAIT_S, signal)
        if (isFinal(view.status)) return typed(definition, view)
        await pauseFor(BETWEEN_WAITS_MS, signal)
      }
    },

    async cancel(id, { wait, signal } = {}) {
      const waitMs = wait === undefined ? 0 : milliseconds(wait, 'wait')
      const query = waitMs === 0 ? '' : `?wait=${waitMs / 1_000}`
      const path = `v1/tasks/${encodeURIComponent(id)}/cancel${query}`
      return (await send(transport, { method: 'POST', path, timeoutMs: timeoutMs + waitMs, signal })) as Cancelled
    },

    async cancelMany(wanted, { signal } = {}) {
      const call = { method: 'POST', path: 'v1/tasks/cancel', body: wanted, timeoutMs, signal } as const
      return (await send(transport, call)) as Cancellation
    },

    async cancellation(id, { signal } = {}) {
      const path = `v1/cancels/${encodeURIComponent(id)}`
      return (await send(transport, { method: 'GET', path, timeoutMs, signal })) as Cancellation
    },

    async result(definition, id, options) {
      const view: TaskView = await client.waitUntilFinished(undefined, id, options)
      if (view.status !== 'completed') throw new TaskEndedError(view)
      return typed(definition, view).output as OutputOf<typeof definition>
    },

    async *list({ queue, status, pageSize, signal }) {
      let cursor: string | undefined
      do {
        const query = new URLSearchParams({ queue, status })
        if (pageSize !== undefined) query.set('limit', String(pageSize))
        if (cursor !== undefined) query.set('cursor', cursor)
        const answer = await send(transport, { method: 'GET', path: `v1/tasks?${query}`, timeoutMs, signal })
        const page = answer as TaskPage
        yield* page.tasks
        cursor = page.next
      } while (cursor !== undefined)
    },
  }
  return client
}

function base(url: string | URL): URL {
  const text = String(url)
  const read = URL.canParse(text) ? new URL(text) : undefined
  if (read === undefined || !/^https?:$/.test(read.protocol)) {
    throw new BullpenError('invalid_configuration', `baseUrl is ${JSON.stringify(text)}; it is an http or https URL`)
  }
  // Relative addresses replace what follows the last slash.
  if (!read.pathname.endsWith('/')) read.pathname += '/'
  return read
}

function typed<D extends TaskDefinition | undefined>(definition: D, view: TaskView): TaskOf<D> {
  if (definition !== undefined && view.task !== definition.name) {
    throw new TypeError(`${view.id} is a task of ${view.task}, not of ${definition.name}`)
  }
  return view as TaskOf<D>
}
