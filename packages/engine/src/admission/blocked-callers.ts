// Makes callers wait while their queue is full. The callers of one queue are served in the order in which they arrived.
//
// While callers wait for a queue, only the first of them tries to store its task, every 20 ms. When that task has been stored or
// its caller has stopped waiting, the next caller tries at once. If there is room for several tasks, they are therefore stored
// one round trip after another. Every try is an ordinary enqueue, so the broker decides each time whether the queue has room, and
// other processes' callers compete for the same room.
//
// A task that is already stored needs no room. A caller whose task may be stored, such as a repeated call with an idempotency key,
// therefore looks for the task while it waits.
//
// A queue may be full for one API key only. The callers with this API key wait in a separate line, so that they do not hold back
// the other callers. If a caller's try fails because of the other line's limit, the caller moves to the end of that line.
import { type Enqueued, QueueFullError } from '@bullpen/contract'
import type { Clock } from '../ports/clock.ts'

/** How long the first caller pauses between two tries, in ms. */
const RETRY_MS = 20

export interface BlockedCall {
  readonly queue: string
  /** The name of the API key of the caller's request. */
  readonly apiKeyName?: string | undefined
  /** Tries to store the task. Rejects with QueueFullError if the queue is full. */
  readonly store: () => Promise<Enqueued>
  /**
   * Returns the task if it is already stored. Rejects with QueueFullError if it is not. Omit this function if the task is known not
   * to be stored.
   */
  readonly findExisting?: (() => Promise<Enqueued>) | undefined
  /** Ends the wait when it aborts. A try that is in progress is completed, and may store its task. */
  readonly signal: AbortSignal
}

export interface BlockedCallers {
  /**
   * Stores the task as soon as the queue has room for it and no earlier caller is waiting in the same line.
   *
   * @throws QueueFullError if the signal aborts first, and any other error that `store` rejects with.
   */
  enqueue(call: BlockedCall): Promise<Enqueued>
  /** Returns whether earlier callers are waiting for the room that this call needs. */
  mustWait(call: Pick<BlockedCall, 'queue' | 'apiKeyName'>): boolean
  /** Returns how many callers are waiting for the queue. */
  count(queue: string): number
}

interface Caller extends BlockedCall {
  line: Line
  resolve(stored: Enqueued): void
  reject(error: unknown): void
}

/** The callers that wait for one queue, or for one API key's room in it. The first one tries next. */
interface Line {
  readonly name: string
  readonly queue: string
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
  async function serve(line: Line): Promise<void> {
    await pause()
    for (let caller = line.callers[0]; caller !== undefined; caller = line.callers[0]) {
      line.trying = caller
      const full = await settle(caller)
      line.trying = undefined
      if (full === undefined) {
        line.callers.shift()
      } else if (caller.signal.aborted) {
        line.callers.shift()
        caller.reject(full)
      } else if (lineName(caller, full) !== line.name) {
        line.callers.shift()
        enter(openLine(caller, full), caller)
      } else {
        line.full = full
        await pause()
      }
    }
    lines.delete(line.name)
  }

  function enter(line: Line, caller: Caller): void {
    caller.line = line
    line.callers.push(caller)
  }

  function openLine(call: BlockedCall, full: QueueFullError): Line {
    const name = lineName(call, full)
    const known = lines.get(name)
    if (known !== undefined) return known
    const line: Line = { name, queue: call.queue, callers: [], trying: undefined, full }
    lines.set(name, line)
    void serve(line)
    return line
  }

  /** Ends the call of a caller that is not trying. A try that is in progress ends the call itself, or is followed by another one. */
  function release(caller: Caller, end: () => void): void {
    const { callers, trying } = caller.line
    const at = callers.indexOf(caller)
    if (trying === caller || at === -1) return
    callers.splice(at, 1)
    end()
  }

  async function join(line: Line, call: BlockedCall): Promise<Enqueued> {
    const { signal, findExisting } = call
    if (signal.aborted) throw line.full
    const { promise, resolve, reject } = Promise.withResolvers<Enqueued>()
    const caller: Caller = { ...call, line, resolve, reject }
    const leave = (): void => release(caller, () => reject(caller.line.full))
    enter(line, caller)
    findExisting?.().then(
      (existing) => release(caller, () => resolve(existing)),
      (error: unknown) => {
        if (!(error instanceof QueueFullError)) release(caller, () => reject(error))
      },
    )
    signal.addEventListener('abort', leave)
    try {
      return await promise
    } finally {
      signal.removeEventListener('abort', leave)
    }
  }

  const lineOf = (call: Pick<BlockedCall, 'queue' | 'apiKeyName'>): Line | undefined =>
    lines.get(queueLine(call)) ?? lines.get(apiKeyLine(call))

  return {
    async enqueue(call) {
      const line = lineOf(call)
      if (line !== undefined) return join(line, call)
      try {
        return await call.store()
      } catch (error) {
        if (error instanceof QueueFullError) return join(openLine(call, error), call)
        throw error
      }
    },
    mustWait: (call) => lineOf(call) !== undefined,
    count: (queue) =>
      [...lines.values()].reduce((sum, line) => sum + (line.queue === queue ? line.callers.length : 0), 0),
  }
}

const queueLine = ({ queue }: Pick<BlockedCall, 'queue'>): string => queue
/** A queue's name does not contain spaces. */
const apiKeyLine = ({ queue, apiKeyName }: Pick<BlockedCall, 'queue' | 'apiKeyName'>): string =>
  `${queue} ${apiKeyName}`

/** Returns the line in which a caller waits after it has reached this limit. */
function lineName(call: BlockedCall, { reached }: QueueFullError): string {
  return reached.apiKeyName === undefined ? queueLine(call) : apiKeyLine(call)
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
