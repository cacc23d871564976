// Decides from the main thread's ticks whether its event loop is stalled, and when a stall is worth a log line. These functions
// are pure.

/** How often the main thread ticks, and how often the monitor thread reads the ticks. */
export const TICK_MS = 100

/**
 * A stall is reported again whenever it has lasted twice as long as at the last report: after 1 s, 2 s, 4 s, and so on. A stall
 * that never ends produces 17 lines in the first day.
 */
const REPORT_FACTOR = 2

export interface StallState {
  /** The latest tick that was seen. */
  readonly tick: number
  /** How long the tick has stayed the same. */
  readonly stalledMs: number
  /** How many times this stall has been reported. */
  readonly reports: number
}

export interface Reading {
  readonly tick: number
  /** The time since the previous reading. */
  readonly elapsedMs: number
}

/** `report` means that the loop is stalled and a line is due. `over` means that the loop runs again after a reported stall. */
export type Finding = 'nothing' | 'report' | 'over'

export const NO_STALL: StallState = { tick: 0, stalledMs: 0, reports: 0 }

export function observe(
  before: StallState,
  { tick, elapsedMs }: Reading,
  warnAfterMs: number,
): { readonly state: StallState; readonly finding: Finding } {
  if (tick !== before.tick) {
    return { state: { tick, stalledMs: 0, reports: 0 }, finding: before.reports === 0 ? 'nothing' : 'over' }
  }
  // A late reading means that the whole process was stopped, for example by SIGSTOP or on an overloaded machine. The loop is not
  // to blame for that time.
  const stalledMs = before.stalledMs + Math.min(elapsedMs, 2 * TICK_MS)
  const isDue = stalledMs >= warnAfterMs * REPORT_FACTOR ** before.reports
  return {
    state: { tick, stalledMs, reports: before.reports + (isDue ? 1 : 0) },
    finding: isDue ? 'report' : 'nothing',
  }
}
