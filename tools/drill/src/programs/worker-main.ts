// A worker process under drill: writes each start, signal and end of its handlers to the ledger, and tells its parent when it works.

import { setTimeout as sleep } from 'node:timers/promises'
import type { WorkerConfig } from '@bullpen/config'
import { defineHandler, TaskError } from '@bullpen/contract'
import { createWorker, runUntilSignalled } from '@bullpen/worker'
import { apartHandler, ORDER_VARIABLE } from '../drills/isolated-block.ts'
import { appendTo, type Effect, machineMs, wallMs } from '../ledger/effects.ts'
import { hold } from './block-event-loop.ts'
import { catalogue, work } from './catalogue.ts'

/** What a fleet passes, as JSON, in the one argument. */
export interface WorkerOrder {
  readonly name: string
  readonly ledger: string
  readonly config: WorkerConfig
}

const given = process.argv[2] ?? ''
process.env[ORDER_VARIABLE] = given
const { name, ledger, config } = JSON.parse(given) as WorkerOrder
const append = appendTo(ledger)
let hasBlocked = false

const workHandler = defineHandler(work, import.meta.url, async ({ id, input, fencingToken: start, signal, snooze }) => {
  const note = (what: Effect['what'], more?: Pick<Effect, 'machineMs'>): void =>
    append({ what, id, start, process: name, at: wallMs(), ...more })
  note('start')
  const signalled = (): void => note('signal', { machineMs: machineMs() })
  signal.addEventListener('abort', signalled, { once: true })
  const { ms, againMs = ms, again, blocks, listens } = input
  if (blocks?.process === name && !hasBlocked) {
    hasBlocked = true
    hold(blocks.ms)
  } else if (blocks === undefined) {
    await sleep(start === 1 ? ms : againMs, undefined, listens ? { signal } : {})
  }
  if (start === 1 && again?.by === 'snooze') snooze(`${again.afterMs}ms`)
  if (start === 1 && again?.by === 'retry') {
    throw new TaskError('again', 'as it was asked to', { retryAfter: `${again.afterMs}ms` })
  }
  note('end')
  signal.removeEventListener('abort', signalled)
  return { start }
})

const worker = createWorker({ catalogue, handlers: { 'drill.work': workHandler, 'drill.apart': apartHandler }, config })
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
