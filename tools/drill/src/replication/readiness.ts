// Reads whether processes say that they are ready, and compares it with what they have done.
import { setTimeout as sleep } from 'node:timers/promises'

export interface ObservedProcess {
  readonly url: string
  /** Returns when the process last did its work, as Unix time in ms, and since when it has had work to do. */
  lastWorkedAt(): number
}

export interface ReadinessWatch {
  /** Says that a fault happens now. */
  fault(): void
  /** Returns at how many readings a process was ready although it should not have been, or the other way round. */
  stop(): Promise<number>
}

const EVERY_MS = 500
/** For how long a process may be ready without having worked, and not be ready after a fault. */
const PATIENCE_MS = 15_000
const REPLY_WITHIN_MS = 5_000

/** A process that does not reply is not ready. Prints each wrong reading. */
export function watchReadiness(processes: readonly ObservedProcess[], print = console.error): ReadinessWatch {
  let isStopped = false
  let faultAt = Number.NEGATIVE_INFINITY
  let wrong = 0

  const read = async ({ url, lastWorkedAt }: ObservedProcess): Promise<void> => {
    const isReady = await fetch(new URL('/readyz', url), { signal: AbortSignal.timeout(REPLY_WITHIN_MS) }).then(
      ({ status }) => status === 200,
      () => false,
    )
    const now = Date.now()
    const since = isReady ? lastWorkedAt() : faultAt
    if (now - since <= PATIENCE_MS) return
    wrong++
    const why = isReady ? 'is ready, and has not worked' : 'is not ready, and no fault has happened'
    print(`readiness: ${url} ${why} for ${((now - since) / 1_000).toFixed(1)} s`)
  }
  const watching = (async () => {
    while (!isStopped) {
      await Promise.all(processes.map(read))
      await sleep(EVERY_MS)
    }
  })()

  return {
    fault() {
      faultAt = Date.now()
    },
    async stop() {
      isStopped = true
      await watching
      return wrong
    },
  }
}
