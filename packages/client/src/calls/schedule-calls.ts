// Implements the client's methods that list, store and control schedules. They need the HTTP API.
import type {
  Accepted,
  CadenceOptions,
  InputOf,
  ScheduleDeleted,
  ScheduledTaskOptions,
  SchedulePolicies,
  ScheduleRequest,
  ScheduleStored,
  ScheduleSync,
  ScheduleView,
  TaskDefinition,
} from '@bullpen/contract'
import { queryText } from '../http/request-parts.ts'
import {
  isSchedule,
  isScheduleDeleted,
  isScheduleList,
  isScheduleRun,
  isScheduleStored,
  isScheduleSync,
} from '../http/schedule-responses.ts'
import type { Check } from '../http/shape.ts'
import type { SendRequest } from '../repetition.ts'
import type { Abortable } from '../task-handle.ts'
import { type PageOptions, pagesOf } from './pages.ts'

interface ChangeOptions extends Abortable {
  /** The name of the person or program that sends the request, for the API's log and the schedule's `changedBy`. */
  readonly by?: string
}

/** A schedule's name, its cron expression or interval, its policies, and the options of its tasks. */
export type ScheduleSettings = { readonly name: string } & CadenceOptions & SchedulePolicies & ScheduledTaskOptions

export interface ScheduleCalls {
  /**
   * Lists the schedules in the order of their names. Each page is requested when the iteration reaches it. `next` is the number
   * of next ticks to return for each schedule, from 0 to 100, and defaults to 1. With `trouble`, returns only the schedules
   * that are failing, overlapping, missing ticks or unreadable.
   */
  list(
    options?: PageOptions & { readonly next?: number; readonly trouble?: boolean },
  ): AsyncGenerator<ScheduleView, void, void>
  /**
   * Returns a schedule. `next` is the number of next ticks to return, from 0 to 100, and defaults to 5.
   *
   * @throws ProblemError `schedule_not_found`, as do all calls that take the name of a schedule.
   */
  show(name: string, options?: Abortable & { readonly next?: number }): Promise<ScheduleView>
  /**
   * Creates a schedule, or replaces all settings of the schedule with the same name. The client repeats a request that got no response,
   * because a second request changes nothing.
   *
   * @example
   * await client.schedules.put(report, { kind: 'daily' }, { name: 'nightly-report', cron: '0 3 * * *' })
   */
  put<D extends TaskDefinition>(
    definition: D,
    input: InputOf<D>,
    settings: ScheduleSettings,
    options?: ChangeOptions,
  ): Promise<ScheduleStored>
  /** Like `put`, for callers that do not have the task's definition. */
  store(request: ScheduleRequest, options?: ChangeOptions): Promise<ScheduleStored>
  /** Stops the ticks until the schedule is resumed. */
  pause(name: string, options?: ChangeOptions): Promise<ScheduleView>
  /** Continues with the first tick after now. */
  resume(name: string, options?: ChangeOptions): Promise<ScheduleView>
  /**
   * Enqueues the schedule's task now. The client does not repeat a call whose outcome is unknown, because a repeat would enqueue a
   * second task.
   */
  run(name: string, options?: ChangeOptions): Promise<Accepted>
  /**
   * Deletes a schedule. The tasks that it has enqueued are not affected. If the first response is lost, the client repeats the call,
   * which then rejects with `schedule_not_found`.
   */
  delete(name: string, options?: ChangeOptions): Promise<ScheduleDeleted>
  /**
   * Makes the stored schedules match those of the API's catalogue, and returns what was changed. With `dryRun`, nothing is changed.
   */
  sync(options?: ChangeOptions & { readonly dryRun?: boolean }): Promise<ScheduleSync>
}

export function scheduleCalls(send: SendRequest): ScheduleCalls {
  const get = <T>(path: string, isExpected: Check<T>, signal: AbortSignal | undefined): Promise<T> =>
    send('look-up', { method: 'GET', path, isExpected }, signal)
  const post = <T>(path: string, { signal, ...body }: ChangeOptions & object, isExpected: Check<T>): Promise<T> => {
    const repeatability = path.endsWith('/run') ? 'once' : 'idempotent'
    return send(repeatability, { method: 'POST', path, body: JSON.stringify(body), isExpected }, signal)
  }
  const pathOf = (name: string): string => `v1/schedules/${encodeURIComponent(name)}`
  const store: ScheduleCalls['store'] = (request, options = {}) =>
    post('v1/schedules', { ...request, ...options }, isScheduleStored)

  return {
    async *list({ next, trouble, ...page } = {}) {
      const listing = { path: 'v1/schedules', query: { next, trouble }, isExpected: isScheduleList }
      for await (const { schedules } of pagesOf(send, listing, page)) yield* schedules
    },
    show: (name, { signal, next } = {}) => get(`${pathOf(name)}${queryText({ next })}`, isSchedule, signal),
    store,
    put: (definition, input, settings, options) => store({ ...settings, task: definition.name, input }, options),
    pause: (name, options = {}) => post(`${pathOf(name)}/pause`, options, isSchedule),
    resume: (name, options = {}) => post(`${pathOf(name)}/resume`, options, isSchedule),
    run: (name, options = {}) => post(`${pathOf(name)}/run`, options, isScheduleRun),
    delete(name, { by, signal } = {}) {
      const path = `${pathOf(name)}${queryText({ by })}`
      return send('idempotent', { method: 'DELETE', path, isExpected: isScheduleDeleted }, signal)
    },
    sync: ({ dryRun = false, ...options } = {}) => post(`v1/schedules/sync?dryRun=${dryRun}`, options, isScheduleSync),
  }
}
