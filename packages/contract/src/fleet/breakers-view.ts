// Defines how the circuit breakers of a queue are shown.
import { z } from 'zod'
import { BREAKER_MODES, BREAKER_STATES } from '../task/breaker-states.ts'

const time = z.iso.datetime()

const breakerViewSchema = z
  .object({
    service: z.string(),
    state: z.enum(BREAKER_STATES),
    mode: z
      .enum(BREAKER_MODES)
      .describe(
        '`auto`: the calls of the service determine the state. `open` or `closed`: a command keeps the breaker in this state.',
      ),
    since: time
      .optional()
      .describe('When the breaker entered its current state. Absent if its state has never changed.'),
    startsAt: time
      .optional()
      .describe(
        'When the next task that depends on the service may start. Absent if one may start now, or if the breaker stays open until a command changes it.',
      ),
    calls: z.int().describe('How many calls the window contains. 0 unless the breaker is closed.'),
    failures: z.int().describe('How many of these calls failed.'),
    slow: z.int().describe('How many of these calls were slow.'),
    setBy: z
      .object({ by: z.string(), at: time })
      .optional()
      .describe('Who sent the command that set the mode, and when. Absent if no command has set it.'),
  })
  .meta({ id: 'Breaker' })

export type BreakerView = z.infer<typeof breakerViewSchema>

export const breakersView = z
  .array(breakerViewSchema)
  .optional()
  .describe('The circuit breakers of the queue, sorted by service. Absent if it has none.')
