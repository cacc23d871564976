// GET /v1/schedules lists the schedules page by page, and GET /v1/schedules/{name} shows one. POST /v1/schedules creates or changes a
// schedule, and POST /v1/schedules/sync makes the stored schedules match the catalogue's. POST /v1/schedules/{name}/pause, resume and run
// control one schedule, and DELETE /v1/schedules/{name} deletes it.
import type {
  Accepted,
  ScheduleDeleted,
  ScheduleRequest,
  ScheduleStored,
  ScheduleSync,
  ScheduleView,
} from '@bullpen/contract'
import {
  type ScheduleList,
  scheduleFrom,
  type scheduleQuerySchema,
  type schedulesQuerySchema,
  type syncQuerySchema,
  taskLinks,
} from '@bullpen/contract/internal'
import { troublesOf } from '@bullpen/engine/internal'
import type { z } from 'zod'
import { requesterIn, requesterOf } from '../../auth/requester.ts'
import type { ApiContext } from '../../http/context.ts'
import type { Call, ChangeQuery, QueryCall } from '../../http/routes/route.ts'
import { scheduleView, syncView } from '../../views/schedule-view.ts'
import { keepToRate } from '../enqueueing/enqueue-rate.ts'
import { pageOfSchedules } from './schedule-pages.ts'

/** How many of the next ticks a response about a changed schedule shows. */
const NEXT_TICKS = 5

type NameCall<Query = unknown> = Call<{ readonly name: string }, Query>

export async function listSchedules(
  { broker }: ApiContext,
  { query }: QueryCall<typeof schedulesQuerySchema>,
): Promise<ScheduleList> {
  const all = await broker.schedules.list()
  const matching = query.trouble ? all.filter((state) => troublesOf(state).length > 0) : all
  const { page, next } = pageOfSchedules(matching, query)
  // Only the schedules of the page need their next ticks.
  return { schedules: page.map((state) => scheduleView(state, query.next)), ...(next !== undefined && { next }) }
}

export async function showSchedule(
  { broker }: ApiContext,
  { params, query }: NameCall<z.output<typeof scheduleQuerySchema>>,
): Promise<ScheduleView> {
  return scheduleView(await broker.schedules.find(params.name), query.next)
}

export async function storeSchedule(
  { catalogue, broker, log }: ApiContext,
  { body, request, reply }: Call,
): Promise<ScheduleStored> {
  // The body has been validated, except for the input.
  const { by: name, ...wanted } = body as ScheduleRequest & { readonly by?: string }
  const definition = scheduleFrom(wanted, catalogue.get(wanted.task))
  const by = requesterOf(request, name)
  const { action, state } = await broker.schedules.put(definition, { source: 'api', by })
  if (action !== 'unchanged') log.info({ schedule: wanted.name, by, requestId: request.id }, `schedule ${action}`)
  const schedule = scheduleView(state, NEXT_TICKS)
  if (action === 'created') reply.code(201).header('location', schedule.links.self)
  return { action, schedule }
}

export async function syncSchedules(
  { catalogue, broker, log }: ApiContext,
  call: QueryCall<typeof syncQuerySchema>,
): Promise<ScheduleSync> {
  const { dryRun } = call.query
  const by = requesterIn(call)
  const changes = await broker.schedules.sync(catalogue.schedules, { by, dryRun })
  for (const { name: schedule, action } of dryRun ? [] : changes) {
    if (action !== 'unchanged') log.info({ schedule, by, requestId: call.request.id }, `schedule ${action}`)
  }
  return syncView(changes, dryRun)
}

export async function pauseSchedule({ broker, log }: ApiContext, call: NameCall): Promise<ScheduleView> {
  const { name } = call.params
  const by = requesterIn(call)
  const state = await broker.schedules.pause(name, by)
  log.info({ schedule: name, by, requestId: call.request.id }, 'schedule paused')
  return scheduleView(state, NEXT_TICKS)
}

export async function resumeSchedule({ broker, log }: ApiContext, call: NameCall): Promise<ScheduleView> {
  const { name } = call.params
  const by = requesterIn(call)
  const state = await broker.schedules.resume(name, by)
  log.info({ schedule: name, by, requestId: call.request.id }, 'schedule resumed')
  return scheduleView(state, NEXT_TICKS)
}

export async function runSchedule(context: ApiContext, call: NameCall): Promise<Accepted> {
  const { broker, emit, log } = context
  const { params, request, reply } = call
  const { name } = params
  const by = requesterIn(call)
  const { record } = await broker.schedules.find(name)
  const implied = [{ queue: record.queue, task: record.template.task }]
  const { id, state } = await keepToRate(context, request, { implied }, async (charge) => {
    const run = await broker.schedules.run(name)
    charge.keep(implied)
    return run
  })
  const { queue, template } = state.record
  emit({ event: 'task.enqueued', queue, task: template.task, id })
  log.info({ schedule: name, id, by, requestId: request.id }, 'schedule run by request')
  const links = taskLinks(id)
  reply.code(202).header('location', links.self)
  return { id, action: 'created', status: 'waiting', links }
}

export async function deleteSchedule(
  { broker, log }: ApiContext,
  { params: { name }, query, request }: NameCall<ChangeQuery>,
): Promise<ScheduleDeleted> {
  const by = requesterOf(request, query.by)
  // Deleting is idempotent, but a name that does not exist is probably misspelt.
  await broker.schedules.remove(name)
  log.info({ schedule: name, by, requestId: request.id }, 'schedule deleted')
  return { name, action: 'deleted' }
}
