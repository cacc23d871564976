// Handles the tasks that call a provider, and other tasks of the same queue. The start and the end of each attempt are written
// to the ledger.
import { defineHandler } from '@bullpen/contract'
import { appendTo, type Effect, wallMs } from '../ledger/effects.ts'
import { besideCalls, call, guardedCall } from '../programs/catalogue.ts'
import { workerArguments } from '../programs/worker-arguments.ts'
import { callProvider } from './provider.ts'

interface Attempt {
  readonly id: string
  readonly fencingToken: number
}

let append: ((effect: Effect) => void) | undefined

async function recorded({ id, fencingToken }: Attempt, act: () => Promise<void>): Promise<{ fencingToken: number }> {
  const { name, ledger } = workerArguments()
  append ??= appendTo(ledger)
  append({ what: 'start', id, fencingToken, worker: name, at: wallMs() })
  await act()
  append({ what: 'end', id, fencingToken, worker: name, at: wallMs() })
  return { fencingToken }
}

export const callHandler = defineHandler(call, import.meta.url, (context) =>
  recorded(context, () => callProvider(context.input.url, context.signal)),
)

export const guardedHandler = defineHandler(guardedCall, import.meta.url, (context) =>
  recorded(context, () => callProvider(context.input.url, context.signal)),
)

export const besideHandler = defineHandler(besideCalls, import.meta.url, (context) => recorded(context, async () => {}))
