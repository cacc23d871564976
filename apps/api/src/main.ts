// Runs the API with the example catalogue until it is told to stop.
import { readFileSync } from 'node:fs'
import { BullpenError } from '@bullpen/contract'
import { readSettings } from '@bullpen/engine'
import { catalogue } from '@bullpen/tasks'
import { createLog } from '@bullpen/telemetry'
import { API_RULES, API_SETTINGS, createApi } from './index.ts'
import { runUntilStopped } from './run.ts'

try {
  const config = readSettings('API', API_SETTINGS, API_RULES, {
    argv: process.argv.slice(2),
    env: process.env,
    readFile: (path) => readFileSync(path, 'utf8'),
  })
  const log = createLog({ level: config.logLevel, name: 'bullpen-api' })
  await runUntilStopped(await createApi({ catalogue, config, log }), log)
} catch (error) {
  console.error(error instanceof BullpenError ? error.message : error)
  process.exitCode = 1
}
