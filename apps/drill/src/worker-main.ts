// A worker process under drill: writes each start and end of its handler to the ledger, and tells its parent when it works.
import { setTimeout as sleep } from 'node:timers/promises'
import { defineHandler } from '@bullpen/contract'
import { createWorker, runUntilSignalled, type WorkerConfig } from '@bullpen/worker'
import { catalogue, work } from './catalogue.ts'
import { appendTo } from './effects.ts'

/** What a fleet passes, as JSON, in the one argument. */
export interface WorkerOrder {
  readonly name: string
  readonly ledger: string
  readonly config: WorkerConfig
}

const { name, ledger, config } = JSON.parse(process.argv[2] ?? '') as WorkerOrder
const append = appendTo(ledger)

const handler = defineHandler(work, import.meta.url, async ({ id, input, start, signal }) => {
  append({ what: 'start', id, start, process: name, at: Date.now() })
  await sleep(input.ms, undefined, input.listens ? { signal } : {})
  append({ what: 'end', id, start, process: name, at: Date.now() })
  return { start }
})

const worker = createWorker({ catalogue, handlers: { 'drill.work': handler }, config })
// A drill that dies must not leave its fleet behind.
process.once('disconnect', () => process.exit(3))
const code = await runUntilSignalled({
  ...worker,
  async start() {
    const ready = await worker.start()
    process.send?.('ready')
    return ready
  },
})
process.exit(code)
