import { createWorker, runUntilSignalled, workerConfig } from '@bullpen/worker'
import { catalogue } from './catalogue.ts'
import report from './report.ts'
import welcome from './welcome.ts'

const handlers = { 'email.welcome': welcome, 'report.build': report }
process.exit(await runUntilSignalled(() => createWorker({ catalogue, handlers, config: workerConfig() })))
