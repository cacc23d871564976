// Stores the schedules of a process's catalogue when the process starts, and declares them as long as it runs.
import { BullpenError, type Log, type ScheduleDefinition } from '@bullpen/contract'
import type { Schedules } from '../ports/broker/schedules.ts'
import type { Clock } from '../ports/clock.ts'
import { DECLARE_EVERY_MS } from './editions.ts'

/** How soon another try follows if the store is not reachable, in ms. */
const RETRY_MS = 1_000

export interface DeclareLoopOptions {
  readonly schedules: Pick<Schedules, 'declare'>
  readonly definitions: readonly ScheduleDefinition[]
  readonly clock: Pick<Clock, 'after'>
  readonly log: Log
}

/** Starts at once, without waiting for the store. Returns a function that stops the loop. */
export function openDeclareLoop({ schedules, definitions, clock, log }: DeclareLoopOptions): () => void {
  let isClosed = false
  let stopTimer = (): void => {}
  const again = (ms: number): void => {
    if (!isClosed) stopTimer = clock.after(ms, run)
  }
  const run = (): void => {
    schedules.declare(definitions, { by: 'catalogue' }).then(
      (changes) => {
        for (const { name: schedule, queue, action } of changes) {
          log.info({ schedule, queue, action }, 'schedule of the catalogue stored')
        }
        again(DECLARE_EVERY_MS)
      },
      (err: unknown) => {
        // The outage reporter logs that Redis is away.
        const isAway = err instanceof BullpenError && err.code === 'redis_unavailable'
        if (!isAway && !isClosed) log.warn({ err }, 'schedules of the catalogue could not be stored: retrying')
        again(isAway ? RETRY_MS : DECLARE_EVERY_MS)
      },
    )
  }
  if (definitions.length > 0) run()
  return () => {
    isClosed = true
    stopTimer()
  }
}
