// Tracks an isolate's calls to its worker that are waiting for a response.

export interface PendingCalls {
  /** Makes a call. `send` is a function that sends the call with the given number. Settles with the response to that number. */
  call(send: (call: number) => void): Promise<unknown>
  /** Settles a call. An unknown number is ignored. */
  settle(call: number, value: unknown, error: Error | undefined): void
}

export function createPendingCalls(): PendingCalls {
  const pending = new Map<number, PromiseWithResolvers<unknown>>()
  let calls = 0
  return {
    call(send) {
      const answer = Promise.withResolvers<unknown>()
      const call = calls++
      send(call)
      pending.set(call, answer)
      return answer.promise
    },
    settle(call, value, error) {
      const answer = pending.get(call)
      pending.delete(call)
      if (error === undefined) answer?.resolve(value)
      else answer?.reject(error)
    },
  }
}
