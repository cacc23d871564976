// Defines the schemas for queue and worker names in requests.
import { z } from 'zod'
import { QUEUE_NAME } from '../task/task-id.ts'

const MAX_WORKER_LENGTH = 300

export const queueText = z.string().regex(QUEUE_NAME, 'expected the name of a queue')
export const workerText = z
  .string()
  .min(1)
  .max(MAX_WORKER_LENGTH)
  .describe("A worker's name, as returned by GET /v1/fleet.")
