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
  listSchedules,
  pauseSchedule,
  resumeSchedule,
  runSchedule,
  showSchedule,
  storeSchedule,
  syncSchedules,
} from '../../handlers/schedules/schedules.ts'
import type { ApiContext } from '../context.ts'
import { type Route, routesOf } from './route.ts'

const nameParams = z.object({ name: z.string().describe("The schedule's name.") })

/** What the requests that control one schedule have in common. */
const control = {
  params: nameParams,
  body: scheduleChangeSchema,
  bodyRequired: false,
  problems: ['redis_unavailable', 'schedule_not_found'],
} as const

const routes = routesOf({ tag: 'Schedules' })

export function scheduleRoutes(context: ApiContext): readonly Route[] {
  return [
    routes.get('/v1/schedules', {
      operationId: 'listSchedules',
      summary: 'List the schedules',
      description:
        'Returns the schedules of the namespace in the order of their names, each with its next ticks, its last run, and what is ' +
        "wrong with it, if anything (`trouble`). The list includes schedules of queues that are not in the API's catalogue, and schedules whose input the API cannot decode. " +
        'Follow `next` until it is absent.',
      query: schedulesQuerySchema,
      responses: { 200: { description: 'One page.', schema: scheduleListSchema } },
      problems: ['invalid_cursor', 'redis_unavailable'],
      handle: (call) => listSchedules(context, call),
    }),
    routes.post('/v1/schedules', {
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
          location: "The schedule's path.",
        },
      },
      problems: [
        'redis_unavailable',
        'unknown_task',
        'invalid_input',
        'invalid_follow_up',
        'invalid_duration',
        'schedule_name_taken',
      ],
      handle: (call) => storeSchedule(context, call),
    }),
    routes.post('/v1/schedules/sync', {
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
      problems: ['redis_unavailable', 'schedule_name_taken'],
      handle: (call) => syncSchedules(context, call),
    }),
    routes.get('/v1/schedules/:name', {
      operationId: 'showSchedule',
      summary: 'Show a schedule and its next ticks',
      params: nameParams,
      query: scheduleQuerySchema,
      responses: { 200: { description: 'The schedule.', schema: scheduleViewSchema } },
      problems: ['schedule_not_found', 'redis_unavailable'],
      handle: (call) => showSchedule(context, call),
    }),
    routes.post('/v1/schedules/:name/pause', {
      ...control,
      operationId: 'pauseSchedule',
      summary: 'Pause a schedule',
      description: 'Stops the ticks until the schedule is resumed. Tasks that have been enqueued are not affected.',
      responses: { 200: { description: 'The schedule is paused.', schema: scheduleViewSchema } },
      handle: (call) => pauseSchedule(context, call),
    }),
    routes.post('/v1/schedules/:name/resume', {
      ...control,
      operationId: 'resumeSchedule',
      summary: 'Resume a paused schedule',
      description: 'Continues with the first tick after now. Ticks that passed during the pause are not caught up.',
      responses: { 200: { description: 'The schedule is active.', schema: scheduleViewSchema } },
      handle: (call) => resumeSchedule(context, call),
    }),
    routes.post('/v1/schedules/:name/run', {
      ...control,
      operationId: 'runSchedule',
      summary: 'Run a schedule now',
      description:
        "Enqueues the schedule's task at once, even if the schedule is paused or the previous run has not ended. The ticks are not " +
        'affected. The request is not idempotent.',
      responses: { 202: { description: 'The task is stored.', schema: acceptedSchema, location: "The task's path." } },
      problems: [...control.problems, 'enqueue_rate_exceeded', 'queue_draining', 'redis_full', 'unreadable_payload'],
      handle: (call) => runSchedule(context, call),
    }),
    routes.delete('/v1/schedules/:name', {
      params: nameParams,
      query: scheduleChangeSchema,
      // A request may have a body, although the route does not use it.
      problems: ['redis_unavailable', 'schedule_not_found'],
      operationId: 'deleteSchedule',
      summary: 'Delete a schedule',
      description:
        "Tasks that have been enqueued are not affected. A schedule of the API's catalogue is created again by the next sync.",
      responses: { 200: { description: 'The schedule is deleted.', schema: scheduleDeletedSchema } },
      handle: (call) => deleteSchedule(context, call),
    }),
  ]
}
