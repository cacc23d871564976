// Converts a command to the form that the API returns.
import type { CommandView } from '@bullpen/contract'
import { type CommandRecord, outcomeOf } from '@bullpen/engine/internal'
import { optionalTime, timeText } from './times.ts'

export function commandView({ id, spec, by, at, responses }: CommandRecord): CommandView {
  return {
    id,
    spec,
    by,
    at: timeText(at),
    outcome: outcomeOf(responses),
    responses: responses.map(({ worker, outcome, detail, at: respondedAt }) => ({
      worker,
      outcome,
      ...(detail === undefined ? {} : { detail }),
      ...optionalTime('at', respondedAt),
    })),
  }
}
