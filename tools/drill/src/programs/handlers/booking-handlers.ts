// Handles bookings, which register a compensation before the step that it undoes, and the tasks that follow from them. A booking can stop
// at each of its positions until it is let through, or until its worker dies.
import { existsSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { defineHandler, TaskError } from '@bullpen/contract'
import { appendTo, type Effect, wallMs } from '../../ledger/effects.ts'
import { after, booking, closing, type POSITIONS, undo } from '../catalogue.ts'
import { workerArguments } from '../worker-arguments.ts'

const POLL_MS = 5

let append: ((effect: Effect) => void) | undefined

export const bookingHandler = defineHandler(booking, import.meta.url, async (context) => {
  const { input, fencingToken, signal, compensate } = context
  const { of, ms, undoes, fails, stop } = input
  const stopAt = async (position: (typeof POSITIONS)[number]): Promise<void> => {
    if (fencingToken > 1 || stop?.at !== position) return
    note('stop', context)
    await untilExists(stop.until)
    note('pass', context)
  }
  note('start', context)
  await stopAt('registering')
  if (undoes) await compensate(undo, { of })
  await stopAt('registered')
  // Here is the step.
  await stopAt('stepped')
  await sleep(ms, undefined, { signal })
  await stopAt('ending')
  if (fails) {
    note('failure', context)
    throw new TaskError('declined', 'the input asks for a failure', { retryable: false })
  }
  note('end', context)
  return { fencingToken }
})

export const afterHandler = defineHandler(after, import.meta.url, noteRun)
export const closingHandler = defineHandler(closing, import.meta.url, noteRun)
export const undoHandler = defineHandler(undo, import.meta.url, noteRun)

interface Run {
  readonly id: string
  readonly input: { readonly of: number }
  readonly fencingToken: number
}

function noteRun(run: Run) {
  note('start', run)
  note('end', run)
  return { fencingToken: run.fencingToken }
}

function note(what: Effect['what'], { id, input: { of }, fencingToken }: Run): void {
  const { name, ledger } = workerArguments()
  append ??= appendTo(ledger)
  append({ what, id, fencingToken, worker: name, at: wallMs(), of })
}

/** Never resolves if there is no file. */
async function untilExists(file: string | undefined): Promise<void> {
  if (file === undefined) return new Promise(() => {})
  while (!existsSync(file)) await sleep(POLL_MS)
}
