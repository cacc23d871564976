// Defines the name that a request gives for its sender, which is logged and stored.
import { z } from 'zod'

/** The schema of a `by`. Line breaks in it could look like further lines of a log or a terminal. */
export const requesterName = z
  .string()
  .min(1)
  .max(100)
  .refine((name) => !/\p{Cc}/u.test(name), 'expected a name without line breaks and other control characters')
