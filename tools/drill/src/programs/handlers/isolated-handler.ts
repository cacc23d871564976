// Handles the isolated task, which blocks only the event loop of its own thread.
import { defineHandler } from '@bullpen/contract'
import { appendTo, wallMs } from '../../ledger/effects.ts'
import { blockEventLoop } from '../block-event-loop.ts'
import { isolated } from '../catalogue.ts'
import { workerArguments } from '../worker-arguments.ts'

export const isolatedHandler = defineHandler(isolated, import.meta.url, async ({ id, input, fencingToken }) => {
  const { name, ledger } = workerArguments()
  const append = appendTo(ledger)
  append({ what: 'start', id, fencingToken, worker: name, at: wallMs() })
  blockEventLoop(input.ms)
  append({ what: 'end', id, fencingToken, worker: name, at: wallMs() })
  return { fencingToken }
})
