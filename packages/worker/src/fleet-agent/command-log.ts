// The command log executes each command once, gives a repeated command the same answer as before, and writes one audit line per
// command.
import { BullpenError, type Log } from '@bullpen/contract'
import type { Command, CommandAnswer } from '@bullpen/engine/internal'

/** How many commands are remembered, so that they are recognised when they are received again. */
const REMEMBERED = 1_000

export interface CommandLogOptions {
  readonly worker: string
  /**
   * Returns a human-readable description of what was done.
   *
   * @throws BullpenError if the command is refused.
   */
  execute(command: Command): string
  readonly log: Log
  /** The time by the store's clock, in ms since 1970. */
  readonly now: () => number
}

export interface CommandLog {
  has(command: string): boolean
  /** Executes the command, unless that was done before, and returns the answer. Idempotent. */
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
