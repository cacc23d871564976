// Defines the schemas for the names of queues, workers, concurrency keys, services and API keys in requests.
import { z } from 'zod'
import { concurrencyKeySchema } from '../definition/concurrency-key.ts'
import { SHORT_NAME, SHORT_NAME_RULE } from '../definition/limits/permits.ts'
import { MAX_TASK_NAME_LENGTH } from '../definition/task-name.ts'
import { nameText } from '../definition/texts.ts'
import { API_KEY_NAME } from '../http/api-key-name.ts'
import { QUEUE_NAME } from '../task/task-id.ts'

const MAX_WORKER_LENGTH = 300

export const queueText = z.string().regex(QUEUE_NAME, 'expected the name of a queue')
export const workerText = nameText(MAX_WORKER_LENGTH).describe("A worker's name, as returned by GET /v1/fleet.")
export const concurrencyKeyText = concurrencyKeySchema.describe('A concurrency key.')
export const taskNameText = nameText(MAX_TASK_NAME_LENGTH).describe('The name of a task definition.')
export const serviceText = z
  .string()
  .regex(SHORT_NAME, SHORT_NAME_RULE)
  .describe("The name of a service in `breakers` of the queue's definition.")
export const apiKeyNameText = z
  .string()
  .regex(API_KEY_NAME, 'expected the name of an API key, which is shorter than the key itself')
  .describe("An API key's name in the API's setting `keys`, or its fingerprint if it has no name.")
