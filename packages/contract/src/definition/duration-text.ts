// The zod schema of a duration in JSON. The value stays text.
import { z } from 'zod'
import { BullpenError } from '../errors/errors.ts'
import { milliseconds } from './duration.ts'

export const durationText = z.string().superRefine((text, context) => {
  try {
    milliseconds(text)
  } catch (error) {
    context.addIssue({ code: 'custom', message: error instanceof BullpenError ? error.message : String(error) })
  }
})
