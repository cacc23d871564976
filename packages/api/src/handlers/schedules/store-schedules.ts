// POST /v1/schedules creates or changes a schedule. POST /v1/schedules/sync makes the stored schedules match the catalogue's.
import type { ScheduleRequest, ScheduleStored, ScheduleSync } from '@bullpen/contract'
import { scheduleFrom, type syncQuerySchema } from '@bullpen/contract/internal'
import type { z } from 'zod'
import { requesterOf } from '../../auth/requester.ts'
import type { ApiContext } from '../../http/context.ts'
import type { Call } from '../../http/routes/route.ts'
import { scheduleView, syncView } from '../../views/schedule-view.ts'

/** How many of the next ticks a response about a changed schedule shows. */
export const NEXT_TICKS = 5

export function storeSchedule({ catalogue, broker, log }: ApiContext) {
  return async ({ body, request, reply }: Call): Promise<ScheduleStored> => {
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
}

export function syncSchedules({ catalogue, broker, log }: ApiContext) {
  return async ({
    query: { dryRun },
    body,
    request,
  }: Call<unknown, z.output<typeof syncQuerySchema>>): Promise<ScheduleSync> => {
    const { by: name } = (body ?? {}) as { readonly by?: string }
    const by = requesterOf(request, name)
    const changes = await broker.schedules.sync(catalogue.schedules, { by, dryRun })
    for (const { name: schedule, action } of dryRun ? [] : changes) {
      if (action !== 'unchanged') log.info({ schedule, by, requestId: request.id }, `schedule ${action}`)
    }
    return syncView(changes, dryRun)
  }
}
