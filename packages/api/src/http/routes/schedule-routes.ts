// Defines the routes that list, store and control schedules.
import {
  acceptedSchema,
  scheduleChangeSchema,
  scheduleDeletedSchema,
  scheduleListSchema,
  schedulePutSchema,
  scheduleQuerySchema,
  scheduleStoredSchema,
  scheduleSyncSchema,
  schedulesQuerySchema,
  scheduleViewSchema,
  syncQuerySchema,
} from '@bullpen/contract/internal'
import { z } from 'zod'
import {
  deleteSchedule,
  pauseSchedule,
  resumeSchedule,
  runSchedule,
} from '../../handlers/schedules/control-schedule.ts'
import { listSchedules, showSchedule } from '../../handlers/schedules/show-schedules.ts'
import { storeSchedule, syncSchedules } from '../../handlers/schedules/store-schedules.ts'
import type { ApiContext } from '../context.ts'
import { BODY_PROBLEMS } from './body-problems.ts'
import { type Route, route } from './route.ts'

const nameParams = z.object({ name: z.string().describe("The schedule's name.") })

/** What the requests that control one schedule have in common. */
const control = {
  method: 'POST',
  access: 'key',
  tag: 'Schedules',
  params: nameParams,
  body: scheduleChangeSchema,
  bodyRequired: false,
  problems: [...BODY_PROBLEMS, 'schedule_not_found'],
} as const

export function scheduleRoutes(context: ApiContext): readonly Route[] {
  return [
    route({
      method: 'GET',
      path: '/v1/schedules',
      access: 'browser',
      tag: 'Schedules',
      operationId: 'listSchedules',
      summary: 'List the schedules',
      description:
        'Returns the schedules of the namespace in the order of their names, each with its next ticks, its last run, and what is ' +
        "wrong with it, if anything (`trouble`). The list includes schedules of queues that are not in the API's catalogue, and schedules whose input the API cannot decode. " +
        'Follow `next` until it is absent.',
      query: schedulesQuerySchema,
      responses: { 200: { description: 'One page.', schema: scheduleListSchema } },
      problems: ['invalid_request', 'invalid_cursor', 'unauthorized', 'redis_unavailable'],
      handle: listSchedules(context),
    }),
    route({
      method: 'POST',
      path: '/v1/schedules',
      access: 'key',
      tag: 'Schedules',
      operationId: 'storeSchedule',
      summary: 'Create or change a schedule',
      description:
        'Stores the schedule under its name, and replaces all settings of a schedule with the same name. A new schedule, and one ' +
        'whose cron expression or interval has changed, starts with the first tick after now. A paused schedule stays paused. ' +
        "The request is idempotent. Settings that come from the task's definition, such as the number of attempts, are copied " +
        "from the API's catalogue at the time of the request.",
      body: schedulePutSchema,
      responses: {
        200: {
          description: 'The schedule already existed. `action` says whether it was changed.',
          schema: scheduleStoredSchema,
        },
        201: {
          description: 'The schedule is created.',
          schema: scheduleStoredSchema,
          headers: [{ name: 'Location', description: "The schedule's path." }],
        },
      },
      problems: [
        ...BODY_PROBLEMS,
        'unknown_task',
        'invalid_input',
        'invalid_follow_up',
        'invalid_duration',
        'schedule_name_taken',
      ],
      handle: storeSchedule(context),
    }),
    route({
      method: 'POST',
      path: '/v1/schedules/sync',
      access: 'key',
      tag: 'Schedules',
      operationId: 'syncSchedules',
      summary: "Make the stored schedules match the catalogue's",
      description:
        "Creates and changes the schedules of the API's catalogue, and deletes those that came from a catalogue and are no longer " +
        'in it. Schedules that only requests have stored are not changed. Pauses are kept. The request is idempotent. Send it ' +
        'after each deployment, when all API processes have the new catalogue.',
      query: syncQuerySchema,
      body: scheduleChangeSchema,
      bodyRequired: false,
      responses: {
        200: {
          description: 'The changes that were made or, with `dryRun`, would be made.',
          schema: scheduleSyncSchema,
        },
      },
      problems: [...BODY_PROBLEMS, 'schedule_name_taken'],
      handle: syncSchedules(context),
    }),
    route({
      method: 'GET',
      path: '/v1/schedules/:name',
      access: 'browser',
      tag: 'Schedules',
      operationId: 'showSchedule',
      summary: 'Show a schedule and its next ticks',
      params: nameParams,
      query: scheduleQuerySchema,
      responses: { 200: { description: 'The schedule.', schema: scheduleViewSchema } },
      problems: ['invalid_request', 'unauthorized', 'schedule_not_found', 'redis_unavailable'],
      handle: showSchedule(context),
    }),
    route({
      ...control,
      path: '/v1/schedules/:name/pause',
      operationId: 'pauseSchedule',
      summary: 'Pause a schedule',
      description: 'Stops the ticks until the schedule is resumed. Tasks that have been enqueued are not affected.',
      responses: { 200: { description: 'The schedule is paused.', schema: scheduleViewSchema } },
      handle: pauseSchedule(context),
    }),
    route({
      ...control,
      path: '/v1/schedules/:name/resume',
      operationId: 'resumeSchedule',
      summary: 'Resume a paused schedule',
      description: 'Continues with the first tick after now. Ticks that passed during the pause are not caught up.',
      responses: { 200: { description: 'The schedule is active.', schema: scheduleViewSchema } },
      handle: resumeSchedule(context),
    }),
    route({
      ...control,
      path: '/v1/schedules/:name/run',
      operationId: 'runSchedule',
      summary: 'Run a schedule now',
      description:
        "Enqueues the schedule's task at once, even if the schedule is paused or the previous run has not ended. The ticks are not " +
        'affected. The request is not idempotent.',
      responses: {
        202: {
          description: 'The task is stored.',
          schema: acceptedSchema,
          headers: [{ name: 'Location', description: "The task's path." }],
        },
      },
      problems: [...control.problems, 'enqueue_rate_exceeded', 'queue_draining', 'redis_full', 'unreadable_payload'],
      handle: runSchedule(context),
    }),
    route({
      method: 'DELETE',
      path: '/v1/schedules/:name',
      access: 'key',
      tag: 'Schedules',
      params: nameParams,
      query: scheduleChangeSchema,
      // A request may have a body, although the route does not use it.
      problems: [...BODY_PROBLEMS, 'schedule_not_found'],
      operationId: 'deleteSchedule',
      summary: 'Delete a schedule',
      description:
        "Tasks that have been enqueued are not affected. A schedule of the API's catalogue is created again by the next sync.",
      responses: { 200: { description: 'The schedule is deleted.', schema: scheduleDeletedSchema } },
      handle: deleteSchedule(context),
    }),
  ]
}
