import { createWorker, runUntilSignalled, workerConfig } from '@bullpen/worker'
import { catalogue } from './catalogue.ts'
import { handlers } from './handlers.ts'

process.exit(await runUntilSignalled(() => createWorker({ catalogue, handlers, config: workerConfig() })))
