// Reads the command line and the environment of the demo.
import { parseArgs } from 'node:util'

/** How many files are read at once: one, as many as the workers have slots, or at most 20. */
export const MODES = ['serial', 'parallel', 'bounded'] as const

export type Mode = (typeof MODES)[number]

export interface DemoArguments {
  readonly api: string
  readonly key: string
  /** The directory as the user typed it. Every path in the list begins with it, as in the output of find. */
  readonly directory: string
  readonly mode: Mode
  /** The names directly below the directory that are skipped. */
  readonly exclude: readonly string[]
  /** The process ids of the workers. One of these workers is killed during the run. Empty without --kill. */
  readonly victims: readonly number[]
}

export const USAGE = `usage: BULLPEN_KEY=… main.ts --api URL --dir DIR [--mode MODE] [--exclude NAME]… [--kill --workers PID,PID]

  --api URL        the address of the Bullpen API
  --dir DIR        hash every regular file below DIR; symbolic links are not followed
  --mode MODE      serial: one file at a time; parallel: as many as the workers have slots, up to 1000;
                   bounded: at most 20 files at a time (default)
  --exclude NAME   skip NAME directly below DIR; can be repeated
  --kill           kill a worker with SIGKILL while it is reading files
  --workers PIDS   the process ids of the workers on this machine, separated by commas; required with --kill
`

/** Reports invalid arguments. The error is printed without a stack trace, and the exit code is 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError'
}

const OPTIONS = {
  api: { type: 'string' },
  dir: { type: 'string' },
  mode: { type: 'string', default: 'bounded' },
  exclude: { type: 'string', multiple: true, default: [] as string[] },
  kill: { type: 'boolean', default: false },
  workers: { type: 'string', default: '' },
} as const

/** @throws UsageError if anything is unknown, missing or invalid. */
export function readArguments(argv: readonly string[], env: NodeJS.ProcessEnv): DemoArguments {
  const values = parsed(argv)
  const workers = values.workers === '' ? [] : values.workers.split(',').map(processId)
  if (values.kill && workers.length === 0) throw new UsageError('--kill requires --workers PID,PID')
  if (!values.kill && workers.length > 0) throw new UsageError('--workers requires --kill')
  const mode = MODES.find((each) => each === values.mode)
  if (mode === undefined) throw new UsageError(`--mode is '${values.mode}'; expected serial, parallel or bounded`)
  const api = required('option --api URL', values.api)
  if (!/^https?:\/\//.test(api) || !URL.canParse(api))
    throw new UsageError(`--api is '${api}'; expected an http or https URL`)
  return {
    api,
    key: required('environment variable BULLPEN_KEY', env['BULLPEN_KEY']),
    directory: required('option --dir DIR', values.dir),
    mode,
    exclude: values.exclude,
    victims: workers,
  }
}

function parsed(argv: readonly string[]) {
  try {
    const { values, tokens } = parseArgs({ args: [...argv], options: OPTIONS, tokens: true })
    // Otherwise, the last value would count without a word.
    const named = tokens.flatMap((each) => (each.kind === 'option' && takesOne(each.name) ? [each.name] : []))
    const repeated = named.find((name, i) => named.indexOf(name) < i)
    if (repeated !== undefined) throw new UsageError(`--${repeated} is specified twice`)
    return values
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error))
  }
}

function takesOne(name: keyof typeof OPTIONS): boolean {
  return OPTIONS[name].type === 'string' && !('multiple' in OPTIONS[name])
}

function required(what: string, value: string | undefined): string {
  if (value === undefined || value === '') throw new UsageError(`missing ${what}`)
  return value
}

/** Process ids below 1 would signal far more than one process. */
function processId(text: string): number {
  const pid = /^\d+$/.test(text) ? Number(text) : Number.NaN
  if (pid >= 1 && pid <= 2 ** 31) return pid
  throw new UsageError(`--workers is '${text}'; expected the ids of processes, separated by commas`)
}
