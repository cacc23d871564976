// What the demo is told on its command line and in its environment.
import { parseArgs } from 'node:util'

export interface DemoArguments {
  readonly api: string
  readonly key: string
  /** As given: the list begins with it, as find's does. */
  readonly directory: string
  /** Names right below the directory. */
  readonly exclude: ReadonlySet<string>
  /** Process ids of the workers of which one is killed in the middle; empty: none is. */
  readonly victims: readonly number[]
  /** Tasks enqueued and not yet ended, at most. */
  readonly inFlight: number
}

export const USAGE = `usage: BULLPEN_KEY=… main.ts --api URL --dir DIR [--exclude NAME]… [--in-flight N] [--kill --workers PID,PID]

  --api URL        where the Bullpen API is
  --dir DIR        every regular file below it is hashed; symbolic links are not followed
  --exclude NAME   leave out this name right below DIR; may be repeated
  --in-flight N    tasks enqueued and not yet ended, 1 to 1000; default 64
  --kill           kill a worker with SIGKILL when a third of the results are in
  --workers PIDS   process ids of the workers on this machine, separated by commas
`

/** Told to the user as it is, without a stack trace; the exit code is 2. */
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

/** @throws UsageError for what is unknown, missing or wrong. */
export function readArguments(argv: readonly string[], env: NodeJS.ProcessEnv): DemoArguments {
  const values = parsed(argv)
  const workers =
    values.workers === '' ? [] : values.workers.split(',').map((text) => number('--workers', text, 2 ** 31))
  if (values.kill && workers.length === 0) throw new UsageError('--kill needs --workers PID,PID')
  if (!values.kill && workers.length > 0) throw new UsageError('--workers has a meaning only with --kill')
  const api = required('--api URL', values.api)
  if (!/^https?:\/\//.test(api) || !URL.canParse(api)) throw new UsageError(`--api ${api} is not an http or https URL`)
  return {
    api,
    key: required('BULLPEN_KEY in the environment', env['BULLPEN_KEY']),
    directory: required('--dir DIR', values.dir),
    exclude: new Set(values.exclude),
    victims: workers,
    inFlight: number('--in-flight', values['in-flight'], 1_000),
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
  if (value === undefined || value === '') throw new UsageError(`${what} is missing`)
  return value
}

function number(option: string, text: string, most: number): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN
  if (!(value >= 1 && value <= most))
    throw new UsageError(`${option}: '${text}' is not a whole number from 1 to ${most}`)
  return value
}
