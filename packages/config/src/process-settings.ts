// Reads the settings of this process. No other file reads its command line or environment.
import { readFileSync } from 'node:fs'
import { BullpenError } from '@bullpen/contract'
import { API_RULES, API_SETTINGS, type ApiConfig } from './api-settings.ts'
import { helpOf } from './help.ts'
import { readSettings, type SettingsOf, type SettingsRule, type SettingsTable } from './settings.ts'
import { WORKER_RULES, WORKER_SETTINGS, type WorkerConfig } from './worker-settings.ts'

/**
 * Reads the settings of a worker from the flags, environment and configuration file of this process. Pass the result to
 * `createWorker({ config: workerConfig() })`. If `--help` is given, all settings are printed and the process exits with code 0. If
 * any settings are invalid, all of the errors are printed together and the process exits with code 2.
 *
 * `more` defines additional settings for your own program, which are read and validated in the same way.
 */
export function workerConfig<T extends SettingsTable = Record<never, never>>(more?: T): WorkerConfig & SettingsOf<T> {
  return readProcess('WORKER', 'worker', { ...WORKER_SETTINGS, ...more } as typeof WORKER_SETTINGS & T, WORKER_RULES)
}

/** Reads the settings of an API in the same way as {@link workerConfig} reads those of a worker. */
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
    console.error(`${error.message}\nRun with --help to list all settings.`)
    process.exit(2)
  }
}
