// How a command looks from outside: the fleet's record as the API's JSON.
import type { CommandView } from '@bullpen/contract'
import { type CommandRecord, outcomeOf } from '@bullpen/engine'
import { optionalTime, timeText } from './times.ts'

export function commandView({ id, order, by, at, answers }: CommandRecord): CommandView {
  return {
    id,
    order,
    by,
    at: timeText(at),
    outcome: outcomeOf(answers),
    answers: answers.map(({ process, outcome, detail, at: answeredAt }) => ({
      process,
      outcome,
      ...(detail === undefined ? {} : { detail }),
      ...optionalTime('at', answeredAt),
    })),
  }
}
