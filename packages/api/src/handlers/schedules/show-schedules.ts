// GET /v1/schedules lists the schedules, and GET /v1/schedules/{name} shows one.
import type { ScheduleView } from '@bullpen/contract'
import type { ScheduleList, scheduleQuerySchema, schedulesQuerySchema } from '@bullpen/contract/internal'
import type { z } from 'zod'
import type { ApiContext } from '../../http/context.ts'
import type { Call } from '../../http/routes/route.ts'
import { scheduleView } from '../../views/schedule-view.ts'

export function listSchedules({ broker }: ApiContext) {
  return async ({ query }: Call<unknown, z.output<typeof schedulesQuerySchema>>): Promise<ScheduleList> => {
    const views = (await broker.schedules.list()).map((state) => scheduleView(state, query.next))
    return { schedules: query.trouble ? views.filter(({ trouble }) => trouble.length > 0) : views }
  }
}

export interface ScheduleParams {
  readonly name: string
}

export function showSchedule({ broker }: ApiContext) {
  return async ({ params, query }: Call<ScheduleParams, z.output<typeof scheduleQuerySchema>>): Promise<ScheduleView> =>
    scheduleView(await broker.schedules.find(params.name), query.next)
}
