// Calls from an isolate to its worker that wait for an answer.

export interface PendingCalls {
  /** `send` sends the call under the given number. Settles with the answer to that number. */
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
