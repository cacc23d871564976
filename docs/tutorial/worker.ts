import { createWorker, runUntilSignalled, workerConfig } from '@bullpen/worker'
import { catalogue } from './catalogue.ts'
import welcome from './welcome.ts'

const handlers = { 'email.welcome': welcome }
process.exit(await runUntilSignalled(() => createWorker({ catalogue, handlers, config: workerConfig() })))
