// A typed client of the HTTP API: enqueue, look up, wait, list, cancel, and control the fleet.
import {
  type Accepted,
  BullpenError,
  type CallOptions,
  type Cancellation,
  type Cancelled,
  type CancelPreview,
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
  /** Address of the API, such as `'http://127.0.0.1:8080'`. A path prefix is kept: requests go to `<baseUrl>/v1/…`. */
  readonly baseUrl: string | URL
  /** The API key, sent as `Authorization: Bearer`. */
  readonly key: string
  /** Sent as `X-Request-Id` with every request; the log lines of the tasks that it enqueues carry it. */
  readonly correlationId?: string
  /** Limit for one try, in addition to the time that the request asks the API to wait. Default '10s'. */
  readonly requestTimeout?: Duration
  /** How long requests that are safe to repeat are retried while the API is unreachable. Default '10s'. */
  readonly retryFor?: Duration
  /** Default: the global `fetch`, which keeps connections alive. */
  readonly fetch?: typeof globalThis.fetch
}

interface Abortable {
  /** Aborts the call; it rejects with the signal's reason. */
  readonly signal?: AbortSignal
}

export interface EnqueueOptions extends CallOptions, Abortable {}

interface WaitOptions extends Abortable {
  /** How long to wait in total. Default 'none': until the task ends. */
  readonly timeout?: Limit
}

interface CancelOptions extends Abortable {
  /** How long to wait for a running task to end, at most '30s'. Default: do not wait. */
  readonly wait?: Duration
  /** Who asks. Stored with the cancelled task. */
  readonly by?: string
}

interface ListOptions extends Abortable {
  readonly queue: string
  readonly status: TaskStatus
  /** Tasks per request, 1 to 200. Default 50. */
  readonly pageSize?: number
}

/** A task as the API shows it, with the input and output types of its definition. Values are JSON: a Date is a string. */
export type TaskOf<D extends TaskDefinition> = Omit<TaskView, 'task' | 'input' | 'output'> & {
  readonly task: D['name']
  readonly input: InputOf<D>
  readonly output?: OutputOf<D>
}

/**
 * A client of Bullpen's HTTP API. Every method rejects with {@link ProblemError} if the API refuses the request or cannot be
 * reached, and with the signal's reason if its signal aborts.
 */
export interface Client extends FleetCalls {
  /**
   * Enqueues a task and resolves once it is stored in Redis. The API validates the input.
   *
   * Retried only if the connection was refused, or after a 503 without a `taskId`: if an answer is lost, sending the request
   * again could create a second task. If the error has a `taskId`, look that task up before you enqueue again.
   */
  enqueue<D extends TaskDefinition>(definition: D, input: InputOf<D>, options?: EnqueueOptions): Promise<Accepted>
  /** Like {@link enqueue}, for programs without the definition. `input` must be JSON. */
  enqueueNamed(task: string, input: unknown, options?: EnqueueOptions): Promise<Accepted>
  /** The task's current state. @throws TypeError if it belongs to another definition. */
  task<D extends TaskDefinition>(definition: D, id: string, options?: Abortable): Promise<TaskOf<D>>
  /** The current state of any task. */
  task(id: string, options?: Abortable): Promise<TaskView>
  /**
   * The task once it is completed, dead, cancelled or expired. Costs one request per 30 s of waiting.
   *
   * @throws DOMException TimeoutError when `timeout` has passed. The task is not affected.
   */
  waitUntilFinished<D extends TaskDefinition>(definition: D, id: string, options?: WaitOptions): Promise<TaskOf<D>>
  waitUntilFinished(id: string, options?: WaitOptions): Promise<TaskView>
  /** Waits like {@link waitUntilFinished} and returns the output. @throws TaskEndedError if the task did not complete. */
  result<D extends TaskDefinition>(definition: D, id: string, options?: WaitOptions): Promise<OutputOf<D>>
  /** Cancels a task: one that has not started never runs, a running one is signalled. Idempotent. */
  cancel(id: string, options?: CancelOptions): Promise<Cancelled>
  /**
   * Cancels all tasks of a queue that match the filter and were enqueued until now. Once it resolves, none of them is
   * started and all are shown as cancelled; {@link cancellation} reports how many have ended. Takes up to 2.5 s if a worker
   * does not answer.
   */
  cancelMany(filter: CancelRequest, options?: Abortable): Promise<Cancellation>
  /** How many tasks {@link cancelMany} would cancel now. Changes nothing. */
  previewCancel(filter: CancelRequest, options?: Abortable): Promise<CancelPreview>
  /** The progress of a {@link cancelMany}; available until a day after it is done. */
  cancellation(id: string, options?: Abortable): Promise<Cancellation>
  /** The tasks of a queue that have a status. Pages are requested as you iterate. */
  list(options: ListOptions): AsyncGenerator<TaskView, void, void>
}

/** Pause before the next wait if the API ended one early, as it does when it shuts down. */
const REPEAT_WAIT_AFTER_MS = 100

/** @throws BullpenError `invalid_configuration` if `baseUrl` is not an http or https URL. */
export function createClient(options: ClientOptions): Client {
  const { key, correlationId, requestTimeout = '10s', retryFor = '10s' } = options
  const timeoutMs = milliseconds(requestTimeout, 'requestTimeout')
  const transport = {
    baseUrl: parseBaseUrl(options.baseUrl),
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

  async function task(...args: TaskArguments<Abortable>): Promise<TaskView> {
    const { definition, id, options } = readArguments(args)
    return checked(definition, await lookUp(id, 0, options?.signal))
  }

  async function waitUntilFinished(...args: TaskArguments<WaitOptions>): Promise<TaskView> {
    const { definition, id, options } = readArguments(args)
    const { timeout = 'none', signal: outer } = options ?? {}
    const signals = [
      ...(outer === undefined ? [] : [outer]),
      ...(timeout === 'none' ? [] : [AbortSignal.timeout(milliseconds(timeout, 'timeout'))]),
    ]
    const signal = signals.length < 2 ? signals[0] : AbortSignal.any(signals)
    for (;;) {
      const view = await lookUp(id, MAX_WAIT_S, signal)
      if (isFinal(view.status)) return checked(definition, view)
      await pauseFor(REPEAT_WAIT_AFTER_MS, signal)
    }
  }

  const client: Client = {
    ...fleetCalls(transport, timeoutMs),

    enqueue: (definition, input, options) => client.enqueueNamed(definition.name, input, options),

    async enqueueNamed(task, input, { signal, ...call } = {}) {
      const body = { task, input, ...call }
      return (await send(transport, { method: 'POST', path: 'v1/tasks', body, timeoutMs, signal })) as Accepted
    },

    task: task as Client['task'],

    waitUntilFinished: waitUntilFinished as Client['waitUntilFinished'],

    async cancel(id, { wait, by, signal } = {}) {
      const waitMs = wait === undefined ? 0 : milliseconds(wait, 'wait')
      const query = waitMs === 0 ? '' : `?wait=${waitMs / 1_000}`
      const path = `v1/tasks/${encodeURIComponent(id)}/cancel${query}`
      const body = by === undefined ? {} : { body: { by } }
      const call = { method: 'POST', path, ...body, timeoutMs: timeoutMs + waitMs, signal } as const
      return (await send(transport, call)) as Cancelled
    },

    async cancelMany(filter, { signal } = {}) {
      const call = { method: 'POST', path: 'v1/tasks/cancel', body: filter, timeoutMs, signal } as const
      return (await send(transport, call)) as Cancellation
    },

    async previewCancel(filter, { signal } = {}) {
      const path = 'v1/tasks/cancel?dryRun=true'
      const call = { method: 'POST', path, body: filter, timeoutMs, repeatable: true, signal } as const
      return (await send(transport, call)) as CancelPreview
    },

    async cancellation(id, { signal } = {}) {
      const path = `v1/cancels/${encodeURIComponent(id)}`
      return (await send(transport, { method: 'GET', path, timeoutMs, signal })) as Cancellation
    },

    async result(definition, id, options) {
      const view = await waitUntilFinished(id, options)
      if (view.status !== 'completed') throw new TaskEndedError(view)
      return checked(definition, view).output as OutputOf<typeof definition>
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

function parseBaseUrl(given: string | URL): URL {
  const text = String(given)
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (url === undefined || !/^https?:$/.test(url.protocol)) {
    throw new BullpenError('invalid_configuration', `baseUrl is ${JSON.stringify(text)}; expected an http or https URL`)
  }
  // Without a slash at the end, a relative URL would replace the last part of the path.
  if (!url.pathname.endsWith('/')) url.pathname += '/'
  return url
}

/** The definition comes first and may be left out. */
type TaskArguments<Options> =
  | readonly [definition: TaskDefinition, id: string, options?: Options | undefined]
  | readonly [id: string, options?: Options | undefined]

function readArguments<Options>(args: TaskArguments<Options>) {
  const [first, second, third] = args
  return typeof first === 'string'
    ? { definition: undefined, id: first, options: second as Options | undefined }
    : { definition: first, id: second as string, options: third }
}

/** @throws TypeError if the task belongs to another definition. */
function checked(definition: TaskDefinition | undefined, view: TaskView): TaskView {
  if (definition !== undefined && view.task !== definition.name) {
    throw new TypeError(`task ${view.id} is a ${view.task}, not a ${definition.name}`)
  }
  return view
}
