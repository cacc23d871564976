// The example API: Bullpen's catalogue over HTTP.
import { readFileSync } from 'node:fs'
import { BullpenError } from '@bullpen/contract'
import { readSettings } from '@bullpen/engine'
import { catalogue } from '@bullpen/tasks'
import { API_RULES, API_SETTINGS, createApi, runUntilSignalled } from './index.ts'

try {
  const config = readSettings('API', API_SETTINGS, API_RULES, {
    argv: process.argv.slice(2),
    env: process.env,
    readFile: (path) => readFileSync(path, 'utf8'),
  })
  process.exit(await runUntilSignalled(await createApi({ catalogue, config })))
} catch (error) {
  console.error(error instanceof BullpenError ? `bullpen-api: ${error.message}` : error)
  process.exit(2)
}
