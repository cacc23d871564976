// The calls out of an isolate that wait for an answer.

export interface Answers {
  /** Sends a call under a number of its own; resolves or rejects with the answer to that number. */
  answered(send: (call: number) => void): Promise<unknown>
  answer(call: number, value: unknown, error: Error | undefined): void
}

export function awaitAnswers(): Answers {
  const waiting = new Map<number, PromiseWithResolvers<unknown>>()
  let calls = 0
  return {
    answered(send) {
      const waits = Promise.withResolvers<unknown>()
      const call = calls++
      send(call)
      waiting.set(call, waits)
      return waits.promise
    },
    answer(call, value, error) {
      const waits = waiting.get(call)
      waiting.delete(call)
      if (error === undefined) waits?.resolve(value)
      else waits?.reject(error)
    },
  }
}
