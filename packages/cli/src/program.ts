// Runs the CLI: parses the command line, runs the command, and prints errors.
import type { Readable, Writable } from 'node:stream'
import { VERSION } from '@bullpen/contract'
import { type CommandLine, commandNamed, parseCommandLine } from './arguments/command-line.ts'
import { cancel } from './commands/cancel.ts'
import type { CommandContext } from './commands/command-context.ts'
import { COMMAND_NAMES, type CommandName } from './commands/command-table.ts'
import { dead } from './commands/dead-tasks/dead.ts'
import { doctor } from './commands/doctor/doctor.ts'
import { enqueue } from './commands/enqueue.ts'
import { drain } from './commands/fleet/drain.ts'
import { breaker, logLevel, resize, sendToTarget, stop } from './commands/fleet/fleet-control.ts'
import { audit, fleet, limits, queues } from './commands/fleet/fleet-views.ts'
import { limit } from './commands/fleet/limit.ts'
import { groups } from './commands/groups/groups.ts'
import { list } from './commands/list.ts'
import { runs } from './commands/runs/runs.ts'
import { schedules } from './commands/schedules/schedules.ts'
import { show } from './commands/show.ts'
import { top } from './commands/top/top.ts'
import { watch } from './commands/watch.ts'
import { connect, readConnection } from './connection.ts'
import { EXIT, type ExitCode } from './exit-codes.ts'
import { commandHelp, generalHelp } from './help.ts'
import { invokerName } from './invoker.ts'
import { errorReport } from './output/error-report.ts'
import { jsonText } from './output/json-text.ts'
import { createOutput } from './output/output.ts'
import { type ProcessEvents, screenOpener } from './output/screen.ts'
import { writeText } from './output/writing.ts'
import { confirm, isInteractive } from './terminal-prompt.ts'

/** The parts of the process that the program uses. */
export interface ProcessIO {
  readonly argv: readonly string[]
  readonly env: NodeJS.ProcessEnv
  readonly stdin: Readable
  readonly stdout: Writable
  readonly stderr: Writable
  readonly events: ProcessEvents
  /** Milliseconds since 1970. */
  readonly now: () => number
}

const COMMANDS: Readonly<Record<Exclude<CommandName, 'help'>, (context: CommandContext) => Promise<ExitCode>>> = {
  enqueue,
  show,
  watch,
  list,
  cancel,
  dead,
  groups,
  runs,
  schedules,
  fleet,
  queues,
  top,
  pause: sendToTarget('pause'),
  resume: sendToTarget('resume'),
  drain,
  stop,
  resize,
  limit,
  limits,
  breaker,
  'log-level': logLevel,
  audit,
  doctor,
}

export async function bullpen(io: ProcessIO): Promise<ExitCode> {
  const { argv, stderr } = io
  // The parsed command line is not used here, because the parser itself may fail.
  const json = argv.includes('--json')
  const command = argv.map((word) => COMMAND_NAMES.find((name) => name === word)).find((name) => name !== undefined)
  const reportError = (error: unknown): ExitCode => {
    const report = errorReport(error, command)
    if (report === undefined) throw error
    stderr.write(json ? `${jsonText({ error: report.error })}\n` : `bullpen: ${report.lines.join('\n')}\n`)
    return report.exitCode
  }
  try {
    return await run(parseCommandLine(argv), io, reportError)
  } catch (error) {
    if (errorReport(error) !== undefined) return reportError(error)
    stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`)
    return EXIT.bug
  }
}

async function run(
  { command, positionals, values }: CommandLine,
  { env, stdin, stdout, stderr, events, now }: ProcessIO,
  reportError: CommandContext['reportError'],
): Promise<ExitCode> {
  if (values.version) {
    await writeText(stdout, `${VERSION}\n`)
    return EXIT.success
  }
  if (values.help || command === undefined || command === 'help') {
    const [word = values.help ? command : undefined] = command === 'help' ? positionals : []
    await writeText(stdout, word === undefined ? generalHelp() : commandHelp(commandNamed(word)))
    return EXIT.success
  }
  return await COMMANDS[command]({
    positionals,
    values,
    connect: (options) => connect(readConnection(values, env), options),
    out: createOutput({ stdout, stderr, json: values.json ?? false, now }),
    openScreen: screenOpener({ stdin, stdout, events, term: env['TERM'] }),
    by: invokerName(values.by, env),
    stdin,
    isInteractive: isInteractive(stdin),
    confirm: (question) => confirm({ stdin, stderr }, question),
    reportError,
  })
}
