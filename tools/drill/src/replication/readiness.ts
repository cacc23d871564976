// Reads whether processes say that they are ready, and compares it with what they have done.
import { setTimeout as sleep } from 'node:timers/promises'
import type { ReplicationFigures } from '../figures/replication.ts'

export interface ObservedProcess {
  readonly url: string
  /** Returns when the process last did its work, as Unix time in ms, and since when it has had work to do. */
  lastWorkedAt(): number
}

export type ReadinessFigures = Required<Pick<ReplicationFigures, 'readinessLateMs' | 'readinessWrong'>>

export interface ReadinessWatch {
  /** Says that a fault happens now. */
  fault(): void
  /** Goes on until every process is ready and has worked since the last fault, or has been wrong for a minute. */
  stop(): Promise<ReadinessFigures>
}

const EVERY_MS = 500
const REPLY_WITHIN_MS = 5_000
/** A process that is wrong for longer does not become right any more, in ms. A busy machine is late by less. */
const STUCK_AFTER_MS = 60_000

/** A process that does not reply is not ready. */
export function watchReadiness(processes: readonly ObservedProcess[]): ReadinessWatch {
  let isStopped = false
  let faultAt: number | undefined
  const watched = processes.map((each) => ({ ...each, record: createReadinessRecord() }))
  const read = async ({ url, lastWorkedAt, record }: (typeof watched)[number]): Promise<void> => {
    const isReady = await fetch(new URL('/readyz', url), { signal: AbortSignal.timeout(REPLY_WITHIN_MS) }).then(
      ({ status }) => status === 200,
      () => false,
    )
    record.note({ isReady, now: Date.now(), workedAt: lastWorkedAt(), faultAt })
  }
  const watching = (async () => {
    while (!isStopped || !watched.every(({ record }) => record.isRight() || record.isStuck())) {
      await Promise.all(watched.map(read))
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
      const stuck = watched.filter(({ record }) => record.isStuck())
      for (const { url } of stuck) console.error(`readiness: ${url} was wrong for ${STUCK_AFTER_MS / 1_000} s`)
      return {
        readinessLateMs: Math.max(...watched.map(({ record }) => record.lateMs())),
        readinessWrong: stuck.length,
      }
    },
  }
}

/** What one process says. The times are Unix times in ms. */
export interface ReadinessReading {
  readonly isReady: boolean
  readonly now: number
  readonly workedAt: number
  /** Undefined before the first fault. */
  readonly faultAt: number | undefined
}

/** Collects the readings of one process. */
export function createReadinessRecord() {
  let last: ReadinessReading | undefined
  /** When the process began to say what it says. */
  let changedAt = 0
  let lateMs = 0
  let isStuck = false
  return {
    note(reading: ReadinessReading): void {
      const { isReady, now, workedAt, faultAt } = reading
      if (isReady !== last?.isReady) changedAt = now
      last = reading
      const reasonAt = isReady ? workedAt : (faultAt ?? changedAt)
      lateMs = Math.max(lateMs, now - reasonAt)
      // Further faults are no excuse for a process that has not become ready between them.
      const wrongSince = isReady ? Math.max(workedAt, changedAt) : changedAt
      isStuck ||= now - wrongSince > STUCK_AFTER_MS
    },
    /** Returns whether the process is ready and has worked since the last fault. */
    isRight: () => last?.isReady === true && last.workedAt >= (last.faultAt ?? 0),
    /** Returns whether the process has ever been wrong for a minute. */
    isStuck: () => isStuck,
    /**
     * Returns for how long after its last work the process was ready at most, or not ready after a fault: what made it so explains it for
     * 15 s.
     */
    lateMs: () => lateMs,
  }
}
