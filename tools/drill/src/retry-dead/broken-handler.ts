// Handles the tasks whose first attempt fails, and writes each start and end to the ledger.
import { setTimeout as sleep } from 'node:timers/promises'
import { defineHandler, TaskError } from '@bullpen/contract'
import { appendTo, type Effect, wallMs } from '../ledger/effects.ts'
import { broken } from '../programs/catalogue.ts'
import { workerArguments } from '../programs/worker-arguments.ts'

/** How long the later attempts take, so that a killed worker interrupts some of them. */
const AGAIN_MS = 10

let append: ((effect: Effect) => void) | undefined

export const brokenHandler = defineHandler(broken, import.meta.url, async ({ id, input, fencingToken }) => {
  const { name, ledger } = workerArguments()
  append ??= appendTo(ledger)
  append({ what: 'start', id, fencingToken, worker: name, at: wallMs() })
  if (fencingToken === 1) {
    throw new TaskError(input.error, `the order of customer ${input.customer} failed`, { retryable: false })
  }
  await sleep(AGAIN_MS)
  append({ what: 'end', id, fencingToken, worker: name, at: wallMs() })
  return { fencingToken }
})
