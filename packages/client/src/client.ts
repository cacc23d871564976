// Creates clients. A client over HTTP has every method. A client over another transport has only the methods that enqueue tasks and
// deal with single ones.
import { type Duration, milliseconds } from '@bullpen/contract'
import type { TaskTransport } from '@bullpen/contract/internal'
import { type BulkCalls, bulkCalls } from './calls/bulk-calls.ts'
import { type DeadTaskCalls, deadTaskCalls } from './calls/dead-task-calls.ts'
import { type DiagnosisCalls, diagnosisCalls } from './calls/diagnosis-calls.ts'
import { type EventCalls, eventCalls } from './calls/event-calls.ts'
import { type FleetCalls, fleetCalls } from './calls/fleet-calls.ts'
import { type GroupCalls, groupCalls } from './calls/group-calls.ts'
import { type ListGroups, type ListRuns, listGroups, listRuns } from './calls/list-calls.ts'
import { type OrphanCalls, orphanCalls } from './calls/orphan-calls.ts'
import { type QueueCalls, queueCalls } from './calls/queue-calls.ts'
import { type RunCalls, runCalls } from './calls/run-calls.ts'
import { type ScheduleCalls, scheduleCalls } from './calls/schedule-calls.ts'
import { type TaskCalls, taskCalls } from './calls/task-calls.ts'
import type { HttpTransport } from './http/http-transport.ts'
import { createRepeat, type SendRequest } from './repetition.ts'

export interface ClientOptions<Transport extends TaskTransport = TaskTransport> {
  /** The transport that carries the calls: {@link http}, or `redis` from `@bullpen/bullmq`. */
  readonly transport: Transport
  /**
   * How long the client keeps repeating a call that is safe to repeat while the API or Redis is unreachable, counted from the end of the
   * first try. While the client waits, such as for a result, the time starts again whenever the API has responded. Defaults to '10s'. It
   * must be shorter than the time for which the queues remember idempotency keys, which is 24 hours by default. Otherwise, a repeated
   * enqueue may store a second task. Over Redis, this applies only to calls with an idempotency key. Without one, a repeat may store a task
   * again if it is made more than 20 s later and the task has ended and been removed.
   */
  readonly retryFor?: Duration
}

/**
 * A client with any transport. Every method rejects with {@link ProblemError} if the call was rejected or the API or Redis cannot be
 * reached, and with the signal's reason if the call's signal aborts.
 */
export interface TaskClient extends TaskCalls, BulkCalls, GroupCalls, RunCalls {}

/**
 * A client over HTTP, which can also list tasks, cancel them by filter, retry and delete dead ones, and control the fleet and the
 * schedules.
 */
export interface Client
  extends TaskClient,
    QueueCalls,
    EventCalls,
    DeadTaskCalls,
    FleetCalls,
    DiagnosisCalls,
    OrphanCalls {
  readonly schedules: ScheduleCalls
  /** Returns the groups that have not ended, the oldest first. `limit` is a number from 1 to 200, and defaults to 50. */
  readonly listGroups: ListGroups
  /** Returns the runs of pipelines that have not ended, the oldest first. `limit` is a number from 1 to 200, and defaults to 50. */
  readonly listRuns: ListRuns
}

/**
 * Creates a client.
 *
 * @example
 * const client = createClient({ transport: http('http://127.0.0.1:8080', process.env.BULLPEN_KEY) })
 * const task = await client.enqueue(welcome, { to: 'ann@example.com' })
 * const { greeting } = await task.result({ timeout: '10s' })
 * @throws BullpenError `invalid_duration`, or TypeError if there is no transport.
 */
export function createClient(options: ClientOptions<HttpTransport>): Client
export function createClient(options: ClientOptions): TaskClient
export function createClient(options: ClientOptions<TaskTransport | HttpTransport>): TaskClient {
  // Plain JavaScript may pass anything.
  if (typeof options?.transport !== 'object' || options.transport === null) {
    throw new TypeError('createClient: expected a transport, as in createClient({ transport: http(url, apiKey) })')
  }
  const { transport, retryFor = '10s' } = options
  const retryForMs = milliseconds(retryFor, 'retryFor')
  const repeat = createRepeat(retryForMs)
  const tasks = {
    ...taskCalls(transport, repeat, retryForMs),
    ...bulkCalls(transport, repeat, retryForMs),
    ...groupCalls(transport.groups, repeat, retryForMs),
    ...runCalls(transport.runs, repeat),
  } satisfies TaskClient
  if (!('send' in transport)) return tasks
  const send: SendRequest = (repeatability, request, signal) =>
    repeat(repeatability, (current) => transport.send(request, current), signal)
  const client: Client = {
    ...tasks,
    ...queueCalls(send),
    ...eventCalls(transport, retryForMs),
    ...deadTaskCalls(send),
    ...fleetCalls(send, repeat, (request, signal) => transport.send(request, signal)),
    ...diagnosisCalls(send),
    ...orphanCalls(send),
    schedules: scheduleCalls(send),
    listGroups: listGroups(send),
    listRuns: listRuns(send),
  }
  return client
}
