// How a part of the fleet is named: by its queue, its worker, or both.
import { z } from 'zod'
import { QUEUE_NAME } from '../task/task-id.ts'

/** The longest that a worker's id may be. */
const MAX_WORKER_ID_LENGTH = 300

export const queueText = z.string().regex(QUEUE_NAME, 'it is the name of a queue')
export const workerText = z
  .string()
  .min(1)
  .max(MAX_WORKER_ID_LENGTH)
  .describe("A worker's id, as GET /v1/fleet tells it.")
