// Reads the settings of this process: the only place that looks at its command line and environment.
import { readFileSync } from 'node:fs'
import { BullpenError } from '@bullpen/contract'
import { API_RULES, API_SETTINGS, type ApiConfig } from './api-settings.ts'
import { helpOf } from './help.ts'
import { readSettings, type SettingsOf, type SettingsRule, type SettingsTable } from './settings.ts'
import { WORKER_RULES, WORKER_SETTINGS, type WorkerConfig } from './worker-settings.ts'

/**
 * The settings of a worker, from this process's flags, environment and file, for `createWorker({ config: workerConfig() })`.
 * `--help` prints them and exits with 0. Wrong settings are printed, all at once, and the process exits with 2.
 *
 * `more`: further settings of your own program, read and checked in the same way.
 */
export function workerConfig<T extends SettingsTable = Record<never, never>>(more?: T): WorkerConfig & SettingsOf<T> {
  return readProcess('WORKER', 'worker', { ...WORKER_SETTINGS, ...more } as typeof WORKER_SETTINGS & T, WORKER_RULES)
}

/** The settings of an API, as {@link workerConfig} reads those of a worker. */
export function apiConfig<T extends SettingsTable = Record<never, never>>(more?: T): ApiConfig & SettingsOf<T> {
  return readProcess('API', 'API', { ...API_SETTINGS, ...more } as typeof API_SETTINGS & T, API_RULES)
}

function readProcess<T extends SettingsTable>(
  program: Parameters<typeof readSettings>[0],
  name: string,
  table: T,
  rules: readonly SettingsRule<T>[],
): SettingsOf<T> {
  const argv = process.argv.slice(2)
  if (argv.includes('--help')) {
    console.log(helpOf(name, table))
    process.exit(0)
  }
  try {
    return readSettings(program, table, rules, {
      argv,
      env: process.env,
      readFile: (path) => readFileSync(path, 'utf8'),
    })
  } catch (error) {
    if (!(error instanceof BullpenError)) throw error
    console.error(`${error.message}\nRun with --help for all settings.`)
    process.exit(2)
  }
}
