// Passes the items of a source's task to the run, one for each that the run requests. If the task is retried, the source yields its items
// again, and the engine skips those that were passed on before.
import { decodeValue, encodeValue, type RunAccess, type SourcePosition } from '@bullpen/engine/internal'

export interface SourceFeed {
  /** What the source's task and the reduction find in place of a stored run. */
  readonly access: RunAccess
  /** Returns the items as JSON. `start` runs the source's task. It is called when the first item is requested. */
  items(start: () => Promise<unknown>): AsyncIterable<string>
  /** Sets what the reduction gets, as JSON. */
  setResults(results: readonly string[]): void
}

/** How long a source waits without a heartbeat, in ms. */
const HEARTBEAT_MS = 1_000

type Step = IteratorResult<string, undefined>

/** `after` calls a function once after some ms, unless the returned function is called. */
export function createSourceFeed(after: (ms: number, callback: () => void) => () => void): SourceFeed {
  let position: Omit<SourcePosition, 'free'> = { emitted: 0, batch: 0, digest: '', cursor: '' }
  /** The request for an item, until it is answered. */
  let requested: PromiseWithResolvers<Step> | undefined
  let ended: Promise<void> | undefined
  /** Answers all requests once the source's task has ended. */
  let answerOver: ((request: PromiseWithResolvers<Step>) => void) | undefined
  let isStopped = false
  let wake = (): void => {}
  let results: readonly string[] = []

  const answer = (act: (request: PromiseWithResolvers<Step>) => void): void => {
    const request = requested
    requested = undefined
    if (request !== undefined) act(request)
  }

  const access: RunAccess = {
    sourceMayWait: true,
    encode: (item) => encodeValue(item, undefined),
    decode: (value) => decodeValue(value, undefined),
    async emit(_, { values, digest, cursor }) {
      if (isStopped) return 'stopped'
      const [value] = values
      if (value !== undefined) {
        position = { ...position, emitted: position.emitted + 1, digest, cursor }
        answer((request) => request.resolve({ done: false, value }))
      }
      return { ...position, free: requested === undefined ? 0 : 1 }
    },
    async untilCredits(_, signal) {
      if (isStopped || requested !== undefined || signal.aborted) return
      const { promise, resolve } = Promise.withResolvers<void>()
      wake = resolve
      signal.addEventListener('abort', wake, { once: true })
      const stop = after(HEARTBEAT_MS, wake)
      await promise
      stop()
      signal.removeEventListener('abort', wake)
    },
    results: async (_, from, limit) => results.slice(from, from + limit).map((each) => decodeValue(each, undefined)),
  }

  /** Runs the source's task. Never rejects. */
  const begin = async (start: () => Promise<unknown>): Promise<void> => {
    try {
      await start()
      answerOver = (request) => request.resolve({ done: true, value: undefined })
    } catch (error) {
      answerOver = (request) => request.reject(error)
    }
    answer(answerOver)
  }

  return {
    access,
    items: (start) => ({
      [Symbol.asyncIterator]: () => ({
        next() {
          requested = Promise.withResolvers()
          const { promise } = requested
          ended ??= begin(start)
          if (answerOver === undefined) wake()
          else answer(answerOver)
          return promise
        },
        async return() {
          isStopped = true
          wake()
          await ended
          return { done: true, value: undefined }
        },
      }),
    }),
    setResults(all) {
      results = all
    },
  }
}
