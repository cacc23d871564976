// Handles the drills' work, which writes each start, signal and end to the ledger. The handlers have a file of their own, so that
// they can also run in child processes.
import { setTimeout as sleep } from 'node:timers/promises'
import { defineHandler, type TaskContext, TaskError } from '@bullpen/contract'
import { appendTo, type Effect, machineMs, wallMs } from '../../ledger/effects.ts'
import { blockEventLoop } from '../block-event-loop.ts'
import {
  filesWork,
  heavyWork,
  lightWork,
  limitedWork,
  mailWork,
  secondWork,
  tenantWork,
  thirdWork,
  work,
} from '../catalogue.ts'
import { isWorkerProcess, workerArguments } from '../worker-arguments.ts'

type Context = Pick<TaskContext<typeof work>, 'id' | 'input' | 'fencingToken' | 'signal' | 'snooze'>

let append: ((effect: Effect) => void) | undefined
/** Only the worker itself is blocked, and only once. */
let hasBlocked = false

async function doWork({ id, input, fencingToken, signal, snooze }: Context) {
  const { ms, againMs = ms, again, blocks, listens, of } = input
  const { name, ledger } = workerArguments()
  append ??= appendTo(ledger)
  const write = append
  const note = (what: Effect['what'], more?: Pick<Effect, 'machineMs'>): void =>
    write({ what, id, fencingToken, worker: name, at: wallMs(), ...(of !== undefined && { of }), ...more })
  note('start')
  const signalled = (): void => note('signal', { machineMs: machineMs() })
  signal.addEventListener('abort', signalled, { once: true })
  if (blocks?.worker === name && isWorkerProcess() && !hasBlocked) {
    hasBlocked = true
    blockEventLoop(blocks.ms)
  } else if (blocks === undefined) {
    await sleep(fencingToken === 1 ? ms : againMs, undefined, listens ? { signal } : {})
  }
  if (fencingToken === 1 && again !== undefined) {
    note('failure')
    if (again.by === 'snooze') snooze(`${again.afterMs}ms`)
    throw new TaskError('again', 'the input asks for a retry', { retryAfter: `${again.afterMs}ms` })
  }
  note('end')
  signal.removeEventListener('abort', signalled)
  return { fencingToken }
}

export const workHandler = defineHandler(work, import.meta.url, doWork)
export const secondHandler = defineHandler(secondWork, import.meta.url, doWork)
export const thirdHandler = defineHandler(thirdWork, import.meta.url, doWork)
export const tenantHandler = defineHandler(tenantWork, import.meta.url, doWork)
export const limitedHandler = defineHandler(limitedWork, import.meta.url, doWork)
export const lightHandler = defineHandler(lightWork, import.meta.url, doWork)
export const heavyHandler = defineHandler(heavyWork, import.meta.url, doWork)
export const mailHandler = defineHandler(mailWork, import.meta.url, doWork)
export const filesHandler = defineHandler(filesWork, import.meta.url, doWork)
