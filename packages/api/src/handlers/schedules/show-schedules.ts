// GET /v1/schedules lists the schedules page by page, and GET /v1/schedules/{name} shows one.
import type { ScheduleView } from '@bullpen/contract'
import type { ScheduleList, scheduleQuerySchema, schedulesQuerySchema } from '@bullpen/contract/internal'
import { troublesOf } from '@bullpen/engine/internal'
import type { z } from 'zod'
import type { ApiContext } from '../../http/context.ts'
import type { Call } from '../../http/routes/route.ts'
import { scheduleView } from '../../views/schedule-view.ts'
import { pageOfSchedules } from './schedule-pages.ts'

export function listSchedules({ broker }: ApiContext) {
  return async ({ query }: Call<unknown, z.output<typeof schedulesQuerySchema>>): Promise<ScheduleList> => {
    const all = await broker.schedules.list()
    const matching = query.trouble ? all.filter((state) => troublesOf(state).length > 0) : all
    const { page, next } = pageOfSchedules(matching, query)
    // Only the schedules of the page need their next ticks.
    return { schedules: page.map((state) => scheduleView(state, query.next)), ...(next !== undefined && { next }) }
  }
}

export interface ScheduleParams {
  readonly name: string
}

export function showSchedule({ broker }: ApiContext) {
  return async ({ params, query }: Call<ScheduleParams, z.output<typeof scheduleQuerySchema>>): Promise<ScheduleView> =>
    scheduleView(await broker.schedules.find(params.name), query.next)
}
