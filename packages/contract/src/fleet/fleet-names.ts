// How a part of the fleet is named: by its queue, its process, or both.
import { z } from 'zod'
import { QUEUE_NAME } from '../task/task-id.ts'

/** The longest that a process's id may be. */
const LONGEST_PROCESS = 300

export const queueText = z.string().regex(QUEUE_NAME, 'it is the name of a queue')
export const processText = z.string().min(1).max(LONGEST_PROCESS).describe("A process's id, as GET /v1/fleet tells it.")
