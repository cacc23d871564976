// Handlers that send what looks like messages of Bullpen, to their worker and to their own isolate.
import { workerData } from 'node:worker_threads'
import { defineHandler, defineTask } from '@bullpen/contract'
import { z } from 'zod'

const port = (workerData as { port?: NodeJS.EventEmitter & { postMessage(message: unknown): void } } | null)?.port
const of = { id: 'q-1', task: 'other', fencingToken: 7, attempt: 1 }

const STRANGE = [null, undefined, 1, 'text', true, [], {}, { kind: 'outcome' }, { type: 'library' }]
export const FORGED: Readonly<Record<string, unknown>> = {
  'no message': { isolate: null },
  'a message without a kind': { isolate: {} },
  'a message of an unknown kind': { isolate: { kind: 'nothing' }, key: 'a guess' },
  'an outcome of another attempt': { isolate: { kind: 'outcome', of, outcome: { kind: 'returned' }, broken: false } },
  'an outcome of wrong types': { isolate: { kind: 'outcome', of: 1, outcome: 'none' } },
  'a run without a task': { isolate: { kind: 'run' } },
  'a signal without a reason': { isolate: { kind: 'signal' } },
  'a log line of an unknown level': { isolate: { kind: 'log', level: 'none', fields: {}, message: '' } },
}

const send = (message: unknown): void => {
  if (port === undefined) process.send?.(message as never)
  else port.postMessage(message)
}
const emit = (message: unknown): void => {
  if (port === undefined) process.emit('message', message as never, undefined as never)
  else port.emit('message', message)
}
const directions = { worker: send, isolate: emit }

export const forge = defineTask({
  name: 'test.forge',
  queue: 'q',
  input: z.object({ to: z.enum(['worker', 'isolate']), what: z.string() }),
  output: z.string(),
})
export const handleForge = defineHandler(forge, import.meta.url, async ({ input, log }) => {
  const to = directions[input.to]
  if (input.what === 'strange') {
    // An IPC channel itself refuses undefined.
    for (const message of STRANGE) if (message !== undefined || input.to === 'isolate') to(message)
    return 'ignored'
  }
  to(FORGED[input.what])
  // After the first message, the isolate is being replaced, and the worker ignores what it sends.
  if (input.to === 'worker') to(FORGED[input.what])
  log.info('sent')
  await new Promise<never>(() => {})
  return 'never'
})
