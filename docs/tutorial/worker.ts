import { createWorker, runUntilSignalled, workerConfig } from '@bullpen/worker'
import { catalogue } from './catalogue.ts'
import welcome from './welcome.ts'

const worker = createWorker({ catalogue, handlers: { 'email.welcome': welcome }, config: workerConfig() })
process.exit(await runUntilSignalled(worker))
