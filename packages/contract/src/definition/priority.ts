// A task's priority: which of the waiting tasks starts first.
import { z } from 'zod'

/** The largest number, and so the least urgent priority. The range is Oban's, in which 0 is also the most urgent. */
export const MAX_PRIORITY = 9

export const prioritySchema = z.int().min(0).max(MAX_PRIORITY)
