// A typed client for the HTTP API. It enqueues, looks up, awaits, lists and cancels tasks, and it controls the fleet.
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
  /**
   * The address of the API, such as `'http://127.0.0.1:8080'`. If the address has a path, requests are sent to `<baseUrl>/v1/…`.
   */
  readonly baseUrl: string | URL
  /** The API key, sent as `Authorization: Bearer`. */
  readonly key: string
  /**
   * An id that is sent as `X-Request-Id` with every request. It also appears in the log lines of the tasks that this client
   * enqueues.
   */
  readonly correlationId?: string
  /** The time limit for a single try, in addition to the time that the request asks the API to wait. Defaults to '10s'. */
  readonly requestTimeout?: Duration
  /** How long the client keeps retrying requests that are safe to repeat while the API is unreachable. Defaults to '10s'. */
  readonly retryFor?: Duration
  /** The function that sends requests. Defaults to the global `fetch`, which keeps connections alive. */
  readonly fetch?: typeof globalThis.fetch
}

interface Abortable {
  /** Aborts the call, which then rejects with the signal's reason. */
  readonly signal?: AbortSignal
}

export interface EnqueueOptions extends CallOptions, Abortable {}

interface WaitOptions extends Abortable {
  /** How long to wait in total. Defaults to 'none', which means until the task ends. */
  readonly timeout?: Limit
}

interface CancelOptions extends Abortable {
  /** How long to wait for a running task to end, at most '30s'. By default, the call does not wait. */
  readonly wait?: Duration
  /** The name of the person or program that cancels the task. It is stored with the cancelled task. */
  readonly by?: string
}

interface ListOptions extends Abortable {
  readonly queue: string
  readonly status: TaskStatus
  /** The number of tasks per request, from 1 to 200. Defaults to 50. */
  readonly pageSize?: number
}

/** A task as the API returns it, with its definition's input and output types. Values are JSON, so a Date is a string. */
export type TaskOf<D extends TaskDefinition> = Omit<TaskView, 'task' | 'input' | 'output'> & {
  readonly task: D['name']
  readonly input: InputOf<D>
  readonly output?: OutputOf<D>
}

/**
 * A client for Bullpen's HTTP API. Every method rejects with {@link ProblemError} if the API rejects the request or cannot be
 * reached, and with the signal's reason if the call's signal aborts.
 */
export interface Client extends FleetCalls {
  /**
   * Enqueues a task and resolves once it is stored in Redis. The API validates the input.
   *
   * The client retries the request only if the connection was refused or the API responded with a 503 that has no `taskId`. If a
   * response is lost, the client does not retry, because sending the request again could create a second task. If the error has a
   * `taskId`, look that task up before you enqueue again.
   */
  enqueue<D extends TaskDefinition>(definition: D, input: InputOf<D>, options?: EnqueueOptions): Promise<Accepted>
  /** Like {@link enqueue}, but for programs that do not have the definition. `input` must be JSON. */
  enqueueNamed(task: string, input: unknown, options?: EnqueueOptions): Promise<Accepted>
  /** Returns a task's current state. @throws TypeError if the task belongs to a different definition. */
  task<D extends TaskDefinition>(definition: D, id: string, options?: Abortable): Promise<TaskOf<D>>
  /** Returns a task's current state, whatever its definition. */
  task(id: string, options?: Abortable): Promise<TaskView>
  /**
   * Resolves to the task once it is completed, dead, cancelled or expired. Waiting takes one request every 30 s.
   *
   * @throws DOMException TimeoutError if `timeout` expires first. The task itself is not affected.
   */
  waitUntilFinished<D extends TaskDefinition>(definition: D, id: string, options?: WaitOptions): Promise<TaskOf<D>>
  waitUntilFinished(id: string, options?: WaitOptions): Promise<TaskView>
  /** Waits like {@link waitUntilFinished} and returns the task's output. @throws TaskEndedError if the task did not complete. */
  result<D extends TaskDefinition>(definition: D, id: string, options?: WaitOptions): Promise<OutputOf<D>>
  /**
   * Cancels a task. A task that has not started will never run. A long task that is running receives an abort signal. A short
   * task that is running continues. This call is idempotent.
   */
  cancel(id: string, options?: CancelOptions): Promise<Cancelled>
  /**
   * Cancels all of a queue's tasks that match the filter and have been enqueued so far. Once the call resolves, none of these
   * tasks will be started, and all of them have the status `cancelled`. {@link cancellation} reports how many have ended. The
   * call takes up to 2.5 s if a worker does not respond.
   */
  cancelMany(filter: CancelRequest, options?: Abortable): Promise<Cancellation>
  /** Returns how many tasks {@link cancelMany} would cancel now, without cancelling any. */
  previewCancel(filter: CancelRequest, options?: Abortable): Promise<CancelPreview>
  /** Returns the progress of a {@link cancelMany}, which is available for 24 hours after the cancellation is completed. */
  cancellation(id: string, options?: Abortable): Promise<Cancellation>
  /** Lists a queue's tasks that have the given status. Each page is requested when the iteration reaches it. */
  list(options: ListOptions): AsyncGenerator<TaskView, void, void>
}

/** The pause before waiting again if the API ended a wait early, as it does when it shuts down. */
const REPEAT_WAIT_AFTER_MS = 100

/** Creates a client. @throws BullpenError `invalid_configuration` if `baseUrl` is not an http or https URL. */
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
    const task = await send(transport, { method: 'GET', path, timeoutMs: timeoutMs + waitS * 1_000, signal })
    return task as TaskView
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
        const response = await send(transport, { method: 'GET', path: `v1/tasks?${query}`, timeoutMs, signal })
        const page = response as TaskPage
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
  // Without a trailing slash, a relative URL would replace the last segment of the path.
  if (!url.pathname.endsWith('/')) url.pathname += '/'
  return url
}

/** The definition comes first and may be omitted. */
type TaskArguments<Options> =
  | readonly [definition: TaskDefinition, id: string, options?: Options | undefined]
  | readonly [id: string, options?: Options | undefined]

function readArguments<Options>(args: TaskArguments<Options>) {
  const [first, second, third] = args
  return typeof first === 'string'
    ? { definition: undefined, id: first, options: second as Options | undefined }
    : { definition: first, id: second as string, options: third }
}

/** Returns the task unchanged. @throws TypeError if the task belongs to a different definition. */
function checked(definition: TaskDefinition | undefined, view: TaskView): TaskView {
  if (definition !== undefined && view.task !== definition.name) {
    throw new TypeError(`task ${view.id} is a ${view.task} task, not a ${definition.name} task`)
  }
  return view
}
