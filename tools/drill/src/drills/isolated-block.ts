// The handler of the drills' isolated task: in a thread of its own, which holds no event loop but that thread's.
import { defineHandler } from '@bullpen/contract'
import { appendTo, wallMs } from '../ledger/effects.ts'
import { hold } from '../programs/block-event-loop.ts'
import { apart } from '../programs/catalogue.ts'
import type { WorkerOrder } from '../programs/worker-main.ts'

/** A thread inherits its process's environment, and not its arguments. */
export const ORDER_VARIABLE = 'BULLPEN_DRILL_ORDER'

export const apartHandler = defineHandler(apart, import.meta.url, async ({ id, input, fencingToken: start }) => {
  const { name, ledger } = JSON.parse(process.env[ORDER_VARIABLE] ?? '') as WorkerOrder
  const append = appendTo(ledger)
  append({ what: 'start', id, start, process: name, at: wallMs() })
  hold(input.ms)
  append({ what: 'end', id, start, process: name, at: wallMs() })
  return { start }
})
