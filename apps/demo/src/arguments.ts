// Reads the command line and the environment of the demo.
import { parseArgs } from 'node:util'

export interface DemoArguments {
  readonly api: string
  readonly key: string
  /** The directory as the user typed it. Every path in the list begins with it, as in the output of find. */
  readonly directory: string
  /** The names directly below the directory that are skipped. */
  readonly exclude: ReadonlySet<string>
  /** The process ids of the workers. One of these workers is killed during the run. Empty without --kill. */
  readonly victims: readonly number[]
  /** The maximum number of tasks that are enqueued and have not ended. */
  readonly inFlight: number
}

export const USAGE = `usage: BULLPEN_KEY=… main.ts --api URL --dir DIR [--exclude NAME]… [--in-flight N] [--kill --workers PID,PID]

  --api URL        the address of the Bullpen API
  --dir DIR        hash every regular file below DIR; symbolic links are not followed
  --exclude NAME   skip NAME directly below DIR; can be repeated
  --in-flight N    keep at most N tasks in flight, from 1 to 1000 (default: 64)
  --kill           kill a worker with SIGKILL once a third of the results are in
  --workers PIDS   the process ids of the workers on this machine, separated by commas; required with --kill
`

/** Reports invalid arguments. The error is printed without a stack trace, and the exit code is 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

const OPTIONS = {
  api: { type: 'string' },
  dir: { type: 'string' },
  exclude: { type: 'string', multiple: true, default: [] as string[] },
  'in-flight': { type: 'string', default: '64' },
  kill: { type: 'boolean', default: false },
  workers: { type: 'string', default: '' },
} as const

/** @throws UsageError if anything is unknown, missing or invalid. */
export function readArguments(argv: readonly string[], env: NodeJS.ProcessEnv): DemoArguments {
  const values = parsed(argv)
  const workers =
    values.workers === '' ? [] : values.workers.split(',').map((text) => wholeNumber('--workers', text, 2 ** 31))
  if (values.kill && workers.length === 0) throw new UsageError('--kill requires --workers PID,PID')
  if (!values.kill && workers.length > 0) throw new UsageError('--workers requires --kill')
  const api = required('option --api URL', values.api)
  if (!/^https?:\/\//.test(api) || !URL.canParse(api))
    throw new UsageError(`--api is '${api}'; expected an http or https URL`)
  return {
    api,
    key: required('environment variable BULLPEN_KEY', env['BULLPEN_KEY']),
    directory: required('option --dir DIR', values.dir),
    exclude: new Set(values.exclude),
    victims: workers,
    inFlight: wholeNumber('--in-flight', values['in-flight'], 1_000),
  }
}

function parsed(argv: readonly string[]) {
  try {
    return parseArgs({ args: [...argv], options: OPTIONS }).values
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error))
  }
}

function required(what: string, value: string | undefined): string {
  if (value === undefined || value === '') throw new UsageError(`missing ${what}`)
  return value
}

function wholeNumber(option: string, text: string, max: number): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN
  if (!(value >= 1 && value <= max)) {
    throw new UsageError(`${option} is '${text}'; expected a whole number from 1 to ${max}`)
  }
  return value
}
