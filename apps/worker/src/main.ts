// The example worker: Bullpen's catalogue with its handlers and resources.

import { readFileSync } from 'node:fs'
import { readSettings, WORKER_RULES, WORKER_SETTINGS } from '@bullpen/config'
import { BullpenError } from '@bullpen/contract'
import { catalogue } from '@bullpen/tasks'
import { createWorker, runUntilSignalled } from '@bullpen/worker'
import { handlers } from './handlers/index.ts'
import { RESOURCE_SETTINGS, workerResources } from './resources/index.ts'

try {
  const { filesRoots, receiptEndpoint, ...config } = readSettings(
    'WORKER',
    { ...WORKER_SETTINGS, ...RESOURCE_SETTINGS },
    WORKER_RULES,
    { argv: process.argv.slice(2), env: process.env, readFile: (path) => readFileSync(path, 'utf8') },
  )
  const resources = workerResources({ filesRoots, receiptEndpoint })
  // At once: a handler that goes on after its attempt was abandoned would keep the process alive.
  process.exit(await runUntilSignalled(createWorker({ catalogue, handlers, resources, config })))
} catch (error) {
  console.error(error instanceof BullpenError ? `bullpen-worker: ${error.message}` : error)
  process.exit(2)
}
