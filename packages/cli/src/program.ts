// The program: reads the command line, carries the command out, and tells what stood in the way.
import type { Readable, Writable } from 'node:stream'
import { VERSION } from '@bullpen/contract'
import { type CommandLine, commandNamed, readCommandLine } from './arguments/arguments.ts'
import { commands } from './commands/audit.ts'
import { cancel } from './commands/cancel.ts'
import type { CommandContext } from './commands/command-context.ts'
import type { CommandName } from './commands/command-table.ts'
import { drain } from './commands/drain.ts'
import { enqueue } from './commands/enqueue.ts'
import { fleet } from './commands/fleet.ts'
import { limit, pause, resize, resume, stop } from './commands/fleet-control.ts'
import { list } from './commands/list.ts'
import { show } from './commands/show.ts'
import { connect, readConnection } from './connection.ts'
import { EXIT, type ExitCode } from './exit-codes.ts'
import { commandHelp, generalHelp } from './help.ts'
import { authorIn } from './invoker.ts'
import { refusalOf } from './output/error-report.ts'
import { outputOn } from './output/output.ts'

export interface Surroundings {
  readonly argv: readonly string[]
  readonly env: NodeJS.ProcessEnv
  readonly stdin: Readable
  readonly stdout: Writable
  readonly stderr: Writable
  /** Milliseconds since 1970. */
  readonly now: () => number
}

const RUN: Readonly<Record<Exclude<CommandName, 'help'>, (desk: CommandContext) => Promise<ExitCode>>> = {
  enqueue,
  show,
  list,
  cancel,
  fleet,
  pause,
  resume,
  drain,
  stop,
  resize,
  limit,
  commands,
}

export async function bullpen(surroundings: Surroundings): Promise<ExitCode> {
  const { argv, stderr } = surroundings
  // Also when the command line can't be read.
  const json = argv.includes('--json')
  const tell = (error: unknown): ExitCode => {
    const refusal = refusalOf(error)
    if (refusal === undefined) throw error
    const { exitCode, lines } = refusal
    stderr.write(json ? `${JSON.stringify({ error: refusal.error })}\n` : `bullpen: ${lines.join('\n')}\n`)
    if (exitCode === EXIT.usage && !json) stderr.write("'bullpen help' tells what there is\n")
    return exitCode
  }
  try {
    return await carryOut(readCommandLine(argv), surroundings, tell)
  } catch (error) {
    if (refusalOf(error) !== undefined) return tell(error)
    stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`)
    return EXIT.bug
  }
}

async function carryOut(
  { command, positionals, values }: CommandLine,
  { env, stdin, stdout, stderr, now }: Surroundings,
  tell: CommandContext['tell'],
): Promise<ExitCode> {
  if (values.version) {
    stdout.write(`${VERSION}\n`)
    return EXIT.done
  }
  if (values.help || command === undefined || command === 'help') {
    const [word = values.help ? command : undefined] = command === 'help' ? positionals : []
    stdout.write(word === undefined ? generalHelp() : commandHelp(commandNamed(word)))
    return EXIT.done
  }
  const out = outputOn({ stdout, stderr, json: values.json ?? false, now })
  const client = () => connect(readConnection(values, env))
  return await RUN[command]({ positionals, values, client, out, by: authorIn(env), stdin, tell })
}
