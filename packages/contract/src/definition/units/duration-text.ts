// Defines zod schemas for durations, limits and amounts of memory in JSON. They validate the string but do not convert it.
import { z } from 'zod'
import { BullpenError } from '../../errors/errors.ts'
import { bytes } from './bytes.ts'
import { type DurationRange, limitMs, milliseconds, millisecondsOrZero, millisecondsWithin } from './duration.ts'

const DURATION = "a duration with a unit, such as '5s'"

export const durationText = textThat(DURATION, (text) => milliseconds(text))

/** A duration, or zero. */
export const durationOrZeroText = textThat(`${DURATION}, or '0s'`, (text) => millisecondsOrZero(text, 'duration'))

/** Returns the schema of a duration within a range. */
export function durationWithin(range: DurationRange): z.ZodString {
  return textThat(`a duration from '${range.min}' to '${range.max}'`, (text) =>
    millisecondsWithin(text, 'duration', range),
  )
}

/** A duration, or `'none'` for no limit. */
export const limitText = z.union([z.literal('none'), textThat(DURATION, (text) => limitMs(text, 'duration'))], {
  error: "expected a duration such as '30s', or 'none' for no limit",
})

/** An amount of memory, or a number of bytes. */
export const bytesOrAmount = z.union([textThat('an amount', (text) => bytes(text, 'the amount')), z.int().min(1)], {
  error: "expected an amount such as '64MiB', or a number of bytes",
})

/** `expected` describes what is accepted. */
function textThat(expected: string, parse: (text: string) => unknown): z.ZodString {
  const error: z.core.$ZodErrorMap = ({ input }) => `${input === undefined ? 'missing; ' : ''}expected ${expected}`
  return z.string({ error }).superRefine((text, context) => {
    try {
      parse(text)
    } catch (error) {
      context.addIssue({ code: 'custom', message: error instanceof BullpenError ? error.message : String(error) })
    }
  })
}
