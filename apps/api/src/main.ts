// The example API: Bullpen's catalogue over HTTP.

import { readFileSync } from 'node:fs'
import { createApi, runUntilSignalled } from '@bullpen/api'
import { API_RULES, API_SETTINGS, readSettings } from '@bullpen/config'
import { BullpenError } from '@bullpen/contract'
import { catalogue } from '@bullpen/tasks'

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
