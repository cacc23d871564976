// Decides from the main thread's ticks whether its event loop is stalled, and when a stall is worth a line in the log. Pure.

/** How often the main thread ticks, and how often the monitor thread reads the ticks. */
export const TICK_MS = 100

/** A stall is reported again whenever it has lasted twice as long: after 1 s, 2 s, 4 s. An endless one makes 17 lines a day. */
const REPORT_FACTOR = 2

export interface StallState {
  /** The newest tick that was seen. */
  readonly tick: number
  /** How long ago it was new. */
  readonly stalledMs: number
  /** How often this stall has been reported. */
  readonly reports: number
}

export interface Reading {
  readonly tick: number
  /** Since the reading before. */
  readonly elapsedMs: number
}

/** `report`: the loop is stalled, and a line is due. `over`: the loop runs again after a stall that was reported. */
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
  // A late reading means that the whole process was stopped, as by SIGSTOP or a starved machine. The loop is not to blame.
  const stalledMs = before.stalledMs + Math.min(elapsedMs, 2 * TICK_MS)
  const isDue = stalledMs >= warnAfterMs * REPORT_FACTOR ** before.reports
  return {
    state: { tick, stalledMs, reports: before.reports + (isDue ? 1 : 0) },
    finding: isDue ? 'report' : 'nothing',
  }
}
