// The progress reports that wait for the pool's word that they are stored.

export interface Progresses {
  /** Sends a report under a number of its own; resolves or rejects with the answer to that number. */
  answered(send: (call: number) => void): Promise<void>
  answer(call: number, error: Error | undefined): void
}

export function awaitProgresses(): Progresses {
  const waiting = new Map<number, { resolve(): void; reject(error: Error): void }>()
  let calls = 0
  return {
    answered(send) {
      return new Promise((resolve, reject) => {
        const call = calls++
        send(call)
        waiting.set(call, { resolve, reject })
      })
    },
    answer(call, error) {
      const report = waiting.get(call)
      waiting.delete(call)
      if (error === undefined) report?.resolve()
      else report?.reject(error)
    },
  }
}
