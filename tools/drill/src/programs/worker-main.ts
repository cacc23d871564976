// Runs a drill's worker, which writes each start, signal and end of its handlers to the ledger, and sends its parent its address
// when it is ready. When the worker shuts down, it writes its metrics to a file.

import { writeFileSync } from 'node:fs'
import { createWorker, runUntilSignalled } from '@bullpen/worker'
import { besideHandler, callHandler, guardedHandler } from '../outage/call-handlers.ts'
import { brokenHandler } from '../retry-dead/broken-handler.ts'
import { catalogue } from './catalogue.ts'
import { afterHandler, bookingHandler, closingHandler, undoHandler } from './handlers/booking-handlers.ts'
import { digestHandler, sortHandler, walkHandler } from './handlers/digest-handlers.ts'
import { hogHandler } from './handlers/hog-handler.ts'
import { isolatedHandler } from './handlers/isolated-handler.ts'
import { pillHandler } from './handlers/pill-handler.ts'
import {
  filesHandler,
  heavyHandler,
  lightHandler,
  limitedHandler,
  mailHandler,
  secondHandler,
  tenantHandler,
  thirdHandler,
  workHandler,
} from './handlers/work-handlers.ts'
import { ARGUMENTS_VARIABLE, WORKER_PID_VARIABLE, type WorkerArguments } from './worker-arguments.ts'

const given = process.argv[2] ?? ''
process.env[ARGUMENTS_VARIABLE] = given
process.env[WORKER_PID_VARIABLE] = `${process.pid}`
const { metrics, config } = JSON.parse(given) as WorkerArguments
let url = ''
/** A resource is closed after the last task and before the probes, so that the metrics can still be scraped. */
const lastScrape = {
  open: () => ({}),
  close: async () => writeFileSync(metrics, await (await fetch(new URL('/metrics', url))).text()),
}

const worker = createWorker({
  catalogue,
  handlers: {
    'drill.work': workHandler,
    'drill.second-work': secondHandler,
    'drill.third-work': thirdHandler,
    'drill.tenant-work': tenantHandler,
    'drill.limited-work': limitedHandler,
    'drill.light-work': lightHandler,
    'drill.heavy-work': heavyHandler,
    'drill.mail-work': mailHandler,
    'drill.files-work': filesHandler,
    'drill.booking': bookingHandler,
    'drill.after': afterHandler,
    'drill.closing': closingHandler,
    'drill.undo': undoHandler,
    'drill.isolated': isolatedHandler,
    'drill.hog': hogHandler,
    'drill.call': callHandler,
    'drill.guarded-call': guardedHandler,
    'drill.beside-calls': besideHandler,
    'drill.pill': pillHandler,
    'drill.broken': brokenHandler,
    'drill.walk': walkHandler,
    'drill.digest-file': digestHandler,
    'drill.sort-by-path': sortHandler,
  },
  config,
  resources: { lastScrape },
  isolatedResources: new URL('./isolated-resources.ts', import.meta.url).href,
})
// If the drill dies, its workers must not be left behind.
process.once('disconnect', () => process.exit(3))
const code = await runUntilSignalled({
  ...worker,
  async start() {
    const ready = await worker.start()
    url = ready.url
    process.send?.(url)
    return ready
  },
})
process.exit(code)
