// Handles the poison pill: a task that ends its process in one of several ways, or blocks it forever.
import { defineHandler } from '@bullpen/contract'
import { appendTo, wallMs } from '../../ledger/effects.ts'
import { blockEventLoop } from '../block-event-loop.ts'
import { type PILLS, pill } from '../catalogue.ts'
import { workerArguments } from '../worker-arguments.ts'

const WAYS: Readonly<Record<(typeof PILLS)[number], () => void>> = {
  kill: () => process.kill(process.pid, 'SIGKILL'),
  abort: () => process.abort(),
  memory() {
    const hoard: number[][] = []
    for (;;) hoard.push(new Array(10_000).fill(hoard.length))
  },
  loop: () => blockEventLoop(Number.POSITIVE_INFINITY),
}

export const pillHandler = defineHandler(pill, import.meta.url, async ({ id, input, fencingToken }) => {
  const { name, ledger } = workerArguments()
  appendTo(ledger)({ what: 'start', id, fencingToken, worker: name, at: wallMs() })
  WAYS[input.how]()
  // A signal ends the process a little later.
  await new Promise<never>(() => {})
  return { fencingToken }
})
