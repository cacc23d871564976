// Handles the tasks that call a provider. The start and the end of each call are written to the ledger.
import { defineHandler } from '@bullpen/contract'
import { appendTo, type Effect, wallMs } from '../ledger/effects.ts'
import { call } from '../programs/catalogue.ts'
import { workerArguments } from '../programs/worker-arguments.ts'
import { callProvider } from './provider.ts'

let append: ((effect: Effect) => void) | undefined

export const callHandler = defineHandler(call, import.meta.url, async ({ id, input, fencingToken, signal }) => {
  const { name, ledger } = workerArguments()
  append ??= appendTo(ledger)
  append({ what: 'start', id, fencingToken, worker: name, at: wallMs() })
  await callProvider(input.url, signal)
  append({ what: 'end', id, fencingToken, worker: name, at: wallMs() })
  return { fencingToken }
})
