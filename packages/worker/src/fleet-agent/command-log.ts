// The log of commands: executes each command once, answers a repeated one as before, and writes one audit line for each.
import { BullpenError, type Log } from '@bullpen/contract'
import type { Command, CommandAnswer } from '@bullpen/engine/internal'

/** How many commands are recognised when they come again. */
const REMEMBERED = 1_000

export interface CommandLogOptions {
  readonly worker: string
  /** Returns what was done, for people. @throws BullpenError when the command is refused. */
  execute(command: Command): string
  readonly log: Log
  /** By the store's clock, in ms since 1970. */
  readonly now: () => number
}

export interface CommandLog {
  has(command: string): boolean
  /** What came of the command, now or before. Idempotent. */
  answer(command: Command): CommandAnswer
}

export function createCommandLog({ worker, execute, log, now }: CommandLogOptions): CommandLog {
  const answers = new Map<string, CommandAnswer>()

  const run = (command: Command): Pick<CommandAnswer, 'outcome' | 'detail'> => {
    try {
      return { outcome: 'done', detail: execute(command) }
    } catch (error) {
      if (!(error instanceof BullpenError))
        log.error({ err: error, command: command.id }, 'command failed unexpectedly')
      return { outcome: 'refused', detail: error instanceof Error ? error.message : String(error) }
    }
  }

  return {
    has: (command) => answers.has(command),
    answer(command) {
      const { id, by, spec } = command
      const known = answers.get(id)
      if (known !== undefined) return known
      const { outcome, detail } = run(command)
      log.info({ command: id, by, spec, outcome, detail }, outcome === 'done' ? 'command executed' : 'command refused')
      const answer = { worker, outcome, detail, at: now() }
      answers.set(id, answer)
      const [oldest = ''] = answers.keys()
      if (answers.size > REMEMBERED) answers.delete(oldest)
      return answer
    },
  }
}
