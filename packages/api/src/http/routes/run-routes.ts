// Defines the routes that start, show and cancel the runs of pipelines.
import {
  cancelRunSchema,
  deletedSchema,
  deleteOneQuerySchema,
  groupsQuerySchema,
  runErrorsQuerySchema,
  runErrorsSchema,
  runListSchema,
  runQuerySchema,
  runViewSchema,
  startRunSchema,
} from '@bullpen/contract/internal'
import { z } from 'zod'
import { cancelRun, deleteRun, listRuns, showRun, showRunErrors, startRun } from '../../handlers/pipelines/runs.ts'
import type { ApiContext } from '../context.ts'
import { type Route, routesOf } from './route.ts'

const idParams = z.object({ id: z.string().describe("The run's id.") })

const CHANGES = ['redis_unavailable', 'run_not_found'] as const satisfies Route['problems']

const LOOKED_UP = ['run_not_found', 'redis_unavailable'] as const

const routes = routesOf({ tag: 'Pipelines' })

export function runRoutes(context: ApiContext): readonly Route[] {
  return [
    routes.post('/v1/runs', {
      operationId: 'startRun',
      summary: 'Start a pipeline',
      description:
        "Starts a run of a pipeline in the catalogue. A worker runs the pipeline's source, and each item that the source yields " +
        'becomes a task of the first stage. The request is idempotent if it has an `id`. The limits of the queues are checked once, ' +
        "before the run starts. The source and the reduction take a token each of the API key's rates. The tasks of the stages take none, " +
        'and no task of the run is refused afterwards.',
      body: startRunSchema,
      responses: {
        200: {
          description: 'A run with this `id` had been started before, by an equal request.',
          schema: runViewSchema,
          location: "The run's path.",
        },
        201: { description: 'The run has started.', schema: runViewSchema, location: "The run's path." },
      },
      problems: [
        ...CHANGES,
        'unknown_pipeline',
        'run_id_taken',
        'enqueue_rate_exceeded',
        'invalid_input',
        'invalid_duration',
        'queue_not_found',
        'queue_draining',
        'queue_full',
        'redis_full',
        'unsafe_redis',
      ],
      handle: (call) => startRun(context, call),
    }),
    routes.get('/v1/runs', {
      operationId: 'listRuns',
      summary: 'List the runs of pipelines that have not ended',
      description: 'Returns the oldest runs first, at most `limit` of them.',
      query: groupsQuerySchema,
      responses: { 200: { description: 'The runs.', schema: runListSchema } },
      problems: ['redis_unavailable'],
      handle: (call) => listRuns(context, call),
    }),
    routes.get('/v1/runs/:id', {
      operationId: 'showRun',
      summary: 'Show a run, or wait for it to end',
      description:
        'With `?wait=SECONDS` (at most 30) or the header `Prefer: wait=SECONDS`, the API responds as soon as the run has ended. If the ' +
        "time runs out first, the API returns the run's current state, so check `state`. The numbers lag behind the tasks by a few " +
        'milliseconds. A completed run has the `output` of its reduction, if the pipeline has one.',
      params: idParams,
      query: runQuerySchema,
      responses: { 200: { description: 'The run.', schema: runViewSchema } },
      problems: LOOKED_UP,
      handle: (call) => showRun(context, call),
    }),
    routes.post('/v1/runs/:id/cancel', {
      operationId: 'cancelRun',
      summary: 'Cancel a run',
      description:
        'No further task of the run starts. Long tasks that are running receive an abort signal, and short ones finish. The response ' +
        'does not wait until they have ended, so wait for the run with GET /v1/runs/{id}. The request is idempotent.',
      params: idParams,
      body: cancelRunSchema,
      bodyRequired: false,
      responses: { 200: { description: 'The run is cancelled, or had already ended.', schema: runViewSchema } },
      problems: CHANGES,
      handle: (call) => cancelRun(context, call),
    }),
    routes.delete('/v1/runs/:id', {
      operationId: 'deleteRun',
      summary: 'Delete a run that has ended',
      description:
        'Deletes the run with its output and its errors. Those of its tasks that are dead, expired or cancelled are kept by the retention of their queues. A run that has ' +
        'not ended is refused with `run_not_ended`, so cancel it first. A repeated request gets `run_not_found`.',
      params: idParams,
      query: deleteOneQuerySchema,
      responses: { 200: { description: 'The run is deleted.', schema: deletedSchema } },
      problems: [...LOOKED_UP, 'run_not_ended'],
      handle: (call) => deleteRun(context, call),
    }),
    routes.get('/v1/runs/:id/errors', {
      operationId: 'showRunErrors',
      summary: "Show a run's errors",
      description:
        'Returns the errors that a run has collected, in the order in which they occurred. An error is stored with its task, so it is ' +
        "available for the retention of the task's queue. Follow `next` until it is absent.",
      params: idParams,
      query: runErrorsQuerySchema,
      responses: { 200: { description: 'One page.', schema: runErrorsSchema } },
      problems: LOOKED_UP,
      handle: (call) => showRunErrors(context, call),
    }),
  ]
}
