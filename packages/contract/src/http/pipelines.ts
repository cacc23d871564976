// Defines the runs of pipelines over HTTP: the requests that start and cancel them, and the responses that show them.
import { z } from 'zod'
import type { Duration } from '../definition/units/duration.ts'
import { durationOrZeroText, durationText } from '../definition/units/duration-text.ts'
import {
  REDUCTION_STATES,
  RUN_ON_ERROR,
  RUN_RESULTS,
  RUN_STATES,
  RUN_STOP_REASONS,
  SOURCE_STATES,
} from '../pipeline/run-states.ts'
import { MEMBER_ENDS } from '../task/group-states.ts'
import { limitSchema, waitSchema } from './queries.ts'
import { requesterName } from './requester.ts'

const by = requesterName
  .optional()
  .describe("Who sends the request, for the run's `by` or `stoppedBy`. The API adds the API key's fingerprint.")

export const startRunSchema = z
  .strictObject({
    pipeline: z.string().describe('The name of a pipeline in the catalogue.'),
    input: z.unknown().optional().describe("The pipeline's input, which its source and its reduction receive."),
    id: z
      .string()
      .optional()
      .describe(
        "The run's id, which makes the request idempotent: `run-` and a ULID in lower case. By default, the API generates one. An id can be used again once its run has expired or was deleted.",
      ),
    totalTimeout: durationText
      .optional()
      .describe(
        "The time after which the run is stopped and fails, from '1s' to '30d'. It is checked about every five seconds, and running handlers are then aborted and awaited. Defaults to '7d'.",
      ),
    keep: durationOrZeroText
      .optional()
      .describe(
        "How long the run is kept after it has ended, from '0s' to '30d'. A run is kept for at least ten seconds, so that callers that wait for its end learn the result. Defaults to '1d'.",
      ),
    by,
  })
  .meta({ id: 'StartRun' })

/** The optional body of the request that cancels a run. */
export const cancelRunSchema = z.strictObject({ by }).meta({ id: 'CancelRun' })

/** The settings of one run. */
export interface RunSettingsOptions {
  /**
   * The time after its start at which a run is stopped and fails, from '1s' to '30d'. The leader checks it about every five
   * seconds, so that the run is stopped up to seven seconds later. The run ends when the handlers that are running then have
   * returned. Defaults to '7d'.
   */
  readonly totalTimeout?: Duration
  /**
   * How long the run is kept after it has ended, from '0s' to '30d'. A run is kept for at least ten seconds, so that callers that wait
   * for its end learn the result. Defaults to '1d'.
   */
  readonly keep?: Duration
}

/** The fields of a valid body of POST /v1/runs. */
export interface StartRunRequest extends RunSettingsOptions {
  readonly pipeline: string
  readonly input?: unknown
  readonly id?: string
  readonly by?: string
}

export const runQuerySchema = z.strictObject({
  wait: waitSchema.optional().describe('How many seconds to wait for the run to end, from 0 to 30.'),
})

export const runErrorsQuerySchema = z.strictObject({
  from: z
    .string()
    .regex(/^\d{1,5}$/, 'expected a whole number from 0 to 99999')
    .transform(Number)
    .default(0)
    .describe('How many errors to skip.'),
  limit: limitSchema.describe('How many errors to return, from 1 to 200.'),
})

const time = z.iso.datetime()

const error = z
  .object({ code: z.string(), message: z.string() })
  .optional()
  .describe("The error of the task. Absent if the task's record has been deleted, and in lists of runs.")

const errorFields = {
  stage: z.int().describe('The number of the stage, starting from 1.'),
  position: z
    .int()
    .describe(
      'The position of the item among those of the source, starting from 0. After a batch, the number of the batch.',
    ),
  end: z.enum(MEMBER_ENDS).describe("How the item's task has ended."),
  task: z.string().describe("The task's id."),
}

export const runViewSchema = z
  .object({
    id: z.string(),
    pipeline: z.string(),
    state: z
      .enum(RUN_STATES)
      .describe(
        '`running`: the source or a stage has work. `stopping`: no further item starts, and running tasks are awaited. `reducing`: the reduction runs on the results. `ended`: no task of the run exists any more.',
      ),
    result: z
      .enum(RUN_RESULTS)
      .optional()
      .describe(
        '`completed`: the run has all of its results, and its output if it has a reduction. Collected errors do not change this. `failed`: an item, the source or the reduction has failed, or a limit was exceeded. `cancelled`: cancelled by request. Present only if the run has ended.',
      ),
    output: z
      .unknown()
      .optional()
      .describe("The reduction's output. Present only if the run is completed and the pipeline has a reduction."),
    onError: z.enum(RUN_ON_ERROR),
    source: z.object({
      task: z.string(),
      queue: z.string(),
      state: z
        .enum(SOURCE_STATES)
        .describe(
          '`active`: a task of the source exists. `parked`: the source waits until fewer items are in the pipeline, and takes no slot. `done`: the source has yielded its last item or is not needed any more. `failed`: its task has failed.',
        ),
      emitted: z.int().describe('How many items the source has yielded.'),
      segments: z.int().describe('How many tasks have run the source, one after another.'),
      taskId: z
        .string()
        .describe(
          'The id of the current or last of these tasks. A completed task of a run is deleted, so this task may no longer exist.',
        ),
      error,
    }),
    stages: z.array(
      z.object({
        task: z.string(),
        queue: z.string(),
        concurrency: z.int(),
        batch: z
          .int()
          .optional()
          .describe(
            "How many items each of the stage's tasks gets at most, as an array. Absent if a task gets a single item.",
          ),
        waiting: z.int().describe('How many items wait for the stage, or how many batches if the source forms them.'),
        running: z.int().describe("How many of the stage's tasks have not ended."),
        completed: z.int(),
        dropped: z.int().describe('How many of the completed tasks had no output, so that their items were dropped.'),
        failed: z.int(),
      }),
    ),
    reduction: z
      .object({
        task: z.string(),
        queue: z.string(),
        state: z
          .enum(REDUCTION_STATES)
          .describe(
            "`pending`: the run does not have all results yet, or has ended before its reduction started. `running`: the reduction's task has not ended. `completed`, `failed`: how this task has ended.",
          ),
        taskId: z
          .string()
          .describe("The id of the reduction's task. The task exists while `state` is `running` or `failed`."),
        error,
      })
      .optional()
      .describe('Present only if the pipeline has a reduction.'),
    results: z
      .int()
      .describe('How many results the run has. If the pipeline ends with a batch, each batch is one result.'),
    errors: z.int().describe('How many items have failed. A batch that fails counts once.'),
    firstError: z.object({ ...errorFields, error }).optional(),
    by: z.string().describe('Who started the run.'),
    startedAt: time,
    timeoutAt: time.describe('When the total timeout passes.'),
    endedAt: time.optional(),
    stoppedAt: time.optional(),
    stopReason: z
      .enum(RUN_STOP_REASONS)
      .optional()
      .describe(
        '`cancelled`: cancelled by request. `first_error`: an item has failed and the pipeline does not collect errors. `run_timeout`: the total timeout has passed. `results_too_large`: the results exceed `maxBytes` of the reduction. `taken`: the run has as many results as `take` requests.',
      ),
    stoppedBy: z.string().optional(),
    links: z.object({ self: z.string(), errors: z.string(), cancel: z.string() }),
  })
  .meta({ id: 'Run' })

export type RunView = z.infer<typeof runViewSchema>

export const runListSchema = z.object({ runs: z.array(runViewSchema) }).meta({ id: 'RunList' })

export type RunList = z.infer<typeof runListSchema>

export const runErrorSchema = z
  .object({
    ...errorFields,
    error: z
      .object({ code: z.string(), message: z.string() })
      .optional()
      .describe("The error of the task. Absent if the task's record has been deleted."),
  })
  .meta({ id: 'RunError' })

export type RunErrorView = z.infer<typeof runErrorSchema>

export const runErrorsSchema = z
  .object({
    errors: z.array(runErrorSchema),
    next: z.int().optional().describe('`from` of the next page, if there is one.'),
  })
  .meta({ id: 'RunErrors' })

export type RunErrors = z.infer<typeof runErrorsSchema>

/** Returns the path of a run. */
export function runPath(id: string): string {
  return `/v1/runs/${encodeURIComponent(id)}`
}
