// Makes callers wait while their queue is full. The callers of one queue are served in the order in which they arrived.
//
// While callers wait for a queue, only the first of them tries to store its task, every 20 ms. When that task has been stored or
// its caller has stopped waiting, the next caller tries at once. If there is room for several tasks, they are therefore stored
// one round trip after another. Every try is an ordinary enqueue, so the broker decides each time whether the queue has room, and
// other processes' callers compete for the same room.
import { type Enqueued, QueueFullError } from '@bullpen/contract'
import type { Clock } from '../ports/clock.ts'

/** How long the first caller pauses between two tries, in ms. */
const RETRY_MS = 20

export interface BlockedCall {
  readonly queue: string
  /** Tries to store the task. Rejects with QueueFullError if the queue is full. */
  readonly store: () => Promise<Enqueued>
  /** Ends the wait when it aborts. A try that is in progress is completed, and may store its task. */
  readonly signal: AbortSignal
}

export interface BlockedCallers {
  /**
   * Stores the task as soon as the queue has room for it and no earlier caller is waiting.
   *
   * @throws QueueFullError if the signal aborts first, and any other error that `store` rejects with.
   */
  enqueue(call: BlockedCall): Promise<Enqueued>
  /** Returns how many callers are waiting for the queue. */
  count(queue: string): number
}

interface Caller extends BlockedCall {
  resolve(stored: Enqueued): void
  reject(error: unknown): void
}

/** The callers that wait for one queue. The first one tries next. */
interface Line {
  readonly callers: Caller[]
  /** The caller whose try is in progress. The caller leaves the line only when the try has ended. */
  trying: Caller | undefined
  /** The error of the last try. */
  full: QueueFullError
}

export function createBlockedCallers(clock: Pick<Clock, 'after'>): BlockedCallers {
  const lines = new Map<string, Line>()
  const pause = () => new Promise<void>((resolve) => clock.after(RETRY_MS, resolve))

  /** Serves the callers in turn until none is left. */
  async function serve(queue: string, line: Line): Promise<void> {
    await pause()
    for (let caller = line.callers[0]; caller !== undefined; caller = line.callers[0]) {
      line.trying = caller
      const full = await settle(caller)
      line.trying = undefined
      if (full === undefined) {
        line.callers.shift()
        continue
      }
      line.full = full
      if (!caller.signal.aborted) await pause()
      else {
        line.callers.shift()
        caller.reject(full)
      }
    }
    lines.delete(queue)
  }

  function openLine(queue: string, full: QueueFullError): Line {
    const line = lines.get(queue) ?? { callers: [], trying: undefined, full }
    if (!lines.has(queue)) {
      lines.set(queue, line)
      void serve(queue, line)
    }
    return line
  }

  async function join(line: Line, call: BlockedCall): Promise<Enqueued> {
    const { signal } = call
    if (signal.aborted) throw line.full
    const { promise, resolve, reject } = Promise.withResolvers<Enqueued>()
    const caller = { ...call, resolve, reject }
    const leave = (): void => {
      if (line.trying === caller) return
      line.callers.splice(line.callers.indexOf(caller), 1)
      reject(line.full)
    }
    line.callers.push(caller)
    signal.addEventListener('abort', leave)
    try {
      return await promise
    } finally {
      signal.removeEventListener('abort', leave)
    }
  }

  return {
    async enqueue(call) {
      const line = lines.get(call.queue)
      if (line !== undefined) return join(line, call)
      try {
        return await call.store()
      } catch (error) {
        if (error instanceof QueueFullError) return join(openLine(call.queue, error), call)
        throw error
      }
    },
    count: (queue) => lines.get(queue)?.callers.length ?? 0,
  }
}

/** Tries once. Returns the error if the queue is full. Otherwise, the caller's call has ended. */
async function settle({ store, resolve, reject }: Caller): Promise<QueueFullError | undefined> {
  try {
    resolve(await store())
  } catch (error) {
    if (error instanceof QueueFullError) return error
    reject(error)
  }
  return undefined
}
