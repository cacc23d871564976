// Converts a command to the form that the API returns.
import type { CommandView } from '@bullpen/contract'
import { optionalTime, timeText } from '@bullpen/contract/internal'
import { type CommandRecord, outcomeOf } from '@bullpen/engine/internal'

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
