// Defines task priorities, which determine the order in which waiting tasks start.
import { z } from 'zod'

/** The least urgent priority. As in Oban, priorities range from 0 to 9, and 0 is the most urgent. */
export const MAX_PRIORITY = 9

export const prioritySchema = z.int().min(0).max(MAX_PRIORITY)
