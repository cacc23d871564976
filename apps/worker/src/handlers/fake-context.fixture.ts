// Runs a handler alone, with just enough of a context.
import { type Handler, makeTaskId, type ParsedInputOf, type ReturnOf, type TaskDefinition } from '@bullpen/contract'

interface Given<R> {
  readonly resources: R
  readonly signal?: AbortSignal
  readonly attempt?: number
  /** Hears what the handler reports. */
  readonly onProgress?: (fraction: number, note: string | undefined) => void
}

/** The id of every task that {@link runHandler} runs. */
export const FAKE_ID = makeTaskId('test', 0, new Uint8Array(10))

/** What the handler returns for an input that the contract accepts, its output checked by the contract. */
export async function runHandler<D extends TaskDefinition, R extends object>(
  handler: Handler<D, R>,
  input: ParsedInputOf<D>,
  { resources, signal = new AbortController().signal, attempt = 1, onProgress }: Given<R>,
): Promise<ReturnOf<D>> {
  const log = { debug() {}, info() {}, warn() {}, error() {} }
  const output = await handler.handle({
    id: FAKE_ID,
    name: handler.task.name,
    input,
    start: attempt,
    attempt,
    meta: {},
    enqueuedAt: new Date(),
    startedAt: new Date(),
    correlationId: undefined,
    fencing: 1,
    heartbeat: () => {},
    checkpoint: () => {},
    signal,
    poolSignal: signal,
    log,
    resources,
    progress: async (fraction, note) => onProgress?.(fraction, note),
    snooze: () => {
      throw new Error('snoozed')
    },
    enqueue: async () => FAKE_ID,
  })
  handler.task.output.parse(output)
  return output
}
