// POST /v1/schedules/{name}/pause, resume and run control one schedule. DELETE /v1/schedules/{name} deletes it.
import type { Accepted, ScheduleDeleted, ScheduleView } from '@bullpen/contract'
import { taskLinks } from '@bullpen/contract/internal'
import type { FastifyRequest } from 'fastify'
import { requesterOf } from '../../auth/requester.ts'
import type { ApiContext } from '../../http/context.ts'
import type { Call } from '../../http/routes/route.ts'
import { scheduleView } from '../../views/schedule-view.ts'
import { keepToRate } from '../enqueueing/enqueue-rate.ts'
import type { ScheduleParams } from './show-schedules.ts'
import { NEXT_TICKS } from './store-schedules.ts'

type ControlCall = Call<ScheduleParams>

interface ChangeQuery {
  readonly by?: string | undefined
}

export function pauseSchedule({ broker, log }: ApiContext) {
  return async ({ params: { name }, body, request }: ControlCall): Promise<ScheduleView> => {
    const by = requester(request, body)
    const state = await broker.schedules.pause(name, by)
    log.info({ schedule: name, by, requestId: request.id }, 'schedule paused')
    return scheduleView(state, NEXT_TICKS)
  }
}

export function resumeSchedule({ broker, log }: ApiContext) {
  return async ({ params: { name }, body, request }: ControlCall): Promise<ScheduleView> => {
    const by = requester(request, body)
    const state = await broker.schedules.resume(name, by)
    log.info({ schedule: name, by, requestId: request.id }, 'schedule resumed')
    return scheduleView(state, NEXT_TICKS)
  }
}

export function runSchedule(context: ApiContext) {
  const { broker, emit, log } = context
  return async ({ params: { name }, body, request, reply }: ControlCall): Promise<Accepted> => {
    const by = requester(request, body)
    const { record } = await broker.schedules.find(name)
    await keepToRate(context, request, [{ queue: record.queue, task: record.template.task, tokens: 1 }])
    const { id, state } = await broker.schedules.run(name)
    const { queue, template } = state.record
    emit({ event: 'task.enqueued', queue, task: template.task, id })
    log.info({ schedule: name, id, by, requestId: request.id }, 'schedule run by request')
    const links = taskLinks(id)
    reply.code(202).header('location', links.self)
    return { id, action: 'created', status: 'waiting', links }
  }
}

export function deleteSchedule({ broker, log }: ApiContext) {
  return async ({ params: { name }, query, request }: Call<ScheduleParams, ChangeQuery>): Promise<ScheduleDeleted> => {
    const by = requesterOf(request, query.by)
    // Deleting is idempotent, but a name that does not exist is probably misspelt.
    await broker.schedules.remove(name)
    log.info({ schedule: name, by, requestId: request.id }, 'schedule deleted')
    return { name, action: 'deleted' }
  }
}

/** The body has been validated. It is undefined, null, or an object with an optional name. */
function requester(request: FastifyRequest, body: unknown): string {
  return requesterOf(request, ((body ?? {}) as { readonly by?: string }).by)
}
