// Runs a drill's worker, which writes each start, signal and end of its handlers to the ledger, and notifies its parent when it
// is ready. When the worker shuts down, it writes its metrics to a file.

import { writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import type { WorkerConfig } from '@bullpen/config'
import { defineHandler, type TaskContext, TaskError } from '@bullpen/contract'
import { createWorker, runUntilSignalled } from '@bullpen/worker'
import { appendTo, type Effect, machineMs, wallMs } from '../ledger/effects.ts'
import { blockEventLoop } from './block-event-loop.ts'
import { catalogue, secondWork, thirdWork, work } from './catalogue.ts'
import { ARGUMENTS_VARIABLE, isolatedHandler } from './isolated-handler.ts'

/** The only argument of the program, which is passed as JSON. */
export interface WorkerArguments {
  readonly name: string
  readonly ledger: string
  /** The file for the metrics that the worker publishes after its last task. */
  readonly metrics: string
  readonly config: WorkerConfig
}

const given = process.argv[2] ?? ''
process.env[ARGUMENTS_VARIABLE] = given
const { name, ledger, metrics, config } = JSON.parse(given) as WorkerArguments
const append = appendTo(ledger)
let hasBlocked = false

type Context = Pick<TaskContext<typeof work>, 'id' | 'input' | 'fencingToken' | 'signal' | 'snooze'>

const doWork = async ({ id, input, fencingToken, signal, snooze }: Context) => {
  const note = (what: Effect['what'], more?: Pick<Effect, 'machineMs'>): void =>
    append({ what, id, fencingToken, worker: name, at: wallMs(), ...more })
  note('start')
  const signalled = (): void => note('signal', { machineMs: machineMs() })
  signal.addEventListener('abort', signalled, { once: true })
  const { ms, againMs = ms, again, blocks, listens } = input
  if (blocks?.worker === name && !hasBlocked) {
    hasBlocked = true
    blockEventLoop(blocks.ms)
  } else if (blocks === undefined) {
    await sleep(fencingToken === 1 ? ms : againMs, undefined, listens ? { signal } : {})
  }
  if (fencingToken === 1 && again?.by === 'snooze') snooze(`${again.afterMs}ms`)
  if (fencingToken === 1 && again?.by === 'retry') {
    throw new TaskError('again', 'the input asks for a retry', { retryAfter: `${again.afterMs}ms` })
  }
  note('end')
  signal.removeEventListener('abort', signalled)
  return { fencingToken }
}

let url = ''
/** A resource is closed after the last task and before the probes, so that the metrics can still be scraped. */
const lastScrape = {
  open: () => ({}),
  close: async () => writeFileSync(metrics, await (await fetch(new URL('/metrics', url))).text()),
}

const worker = createWorker({
  catalogue,
  handlers: {
    'drill.work': defineHandler(work, import.meta.url, doWork),
    'drill.second-work': defineHandler(secondWork, import.meta.url, doWork),
    'drill.third-work': defineHandler(thirdWork, import.meta.url, doWork),
    'drill.isolated': isolatedHandler,
  },
  config,
  resources: { lastScrape },
})
// If the drill dies, its workers must not be left behind.
process.once('disconnect', () => process.exit(3))
const code = await runUntilSignalled({
  ...worker,
  async start() {
    const ready = await worker.start()
    url = ready.url
    process.send?.('ready')
    return ready
  },
})
process.exit(code)
