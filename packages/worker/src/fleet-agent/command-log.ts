// The ledger of commands: each is carried out once, answered the same whenever it is told again, and leaves a line in the log.
import { BullpenError, type Log } from '@bullpen/contract'
import type { Command, CommandAnswer } from '@bullpen/engine/internal'
import { type CommandDependencies, executeCommand } from './execute-command.ts'
import { planCommand } from './plan-command.ts'

/** So many are known again when they come a second time. */
const REMEMBERED = 1_000

const AUDIT = { done: 'a command was carried out', refused: 'a command was refused' } as const

export interface CommandLogOptions extends CommandDependencies {
  readonly worker: string
  /** Whether the worker drains. */
  readonly ending: () => boolean
  readonly log: Log
  /** By the store's clock, in ms since 1970. */
  readonly now: () => number
}

export interface CommandLog {
  has(command: string): boolean
  /** What became of it, now or before. */
  answer(command: Command): CommandAnswer
}

export function createCommandLog({ worker, log, now, ...means }: CommandLogOptions): CommandLog {
  const answers = new Map<string, CommandAnswer>()

  const obey = ({ id, spec }: Command): Pick<CommandAnswer, 'outcome' | 'detail'> => {
    try {
      const deed = planCommand(spec, { worker, queues: means.keeper.queues, ending: means.ending() })
      return { outcome: 'done', detail: executeCommand(deed, id, means) }
    } catch (error) {
      if (!(error instanceof BullpenError)) log.error({ err: error, command: id }, 'a command failed')
      return { outcome: 'refused', detail: error instanceof Error ? error.message : String(error) }
    }
  }

  return {
    has: (command) => answers.has(command),
    answer(command) {
      const { id, by, spec } = command
      const known = answers.get(id)
      if (known !== undefined) return known
      const { outcome, detail } = obey(command)
      log.info({ command: id, by, order: spec, outcome, detail }, outcome === 'done' ? AUDIT.done : AUDIT.refused)
      const answer = { worker, outcome, detail, at: now() }
      answers.set(id, answer)
      const [oldest = ''] = answers.keys()
      if (answers.size > REMEMBERED) answers.delete(oldest)
      return answer
    },
  }
}
