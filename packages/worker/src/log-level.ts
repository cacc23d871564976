// Changes the level of a worker's log while the worker runs.
import type { Log, LogLevel } from '@bullpen/contract'
import type { CommandedLevel } from '@bullpen/contract/internal'
import type { Clock } from '@bullpen/engine/internal'

export interface LogLevelControl {
  /**
   * Sets the level until the worker exits or, if `forMs` is given, for that time. `configured` stands for the level of the settings. An
   * earlier change no longer ends.
   */
  set(level: CommandedLevel, forMs?: number | undefined): void
  /** Cancels the end of the last change. */
  close(): void
}

export interface LogLevelOptions {
  /** The level of the settings. */
  readonly configured: LogLevel
  readonly apply: (level: LogLevel) => void
  readonly clock: Pick<Clock, 'after'>
  readonly log: Pick<Log, 'info'>
}

export function createLogLevel({ configured, apply, clock, log }: LogLevelOptions): LogLevelControl {
  let cancelEnd = (): void => {}
  const set = (level: CommandedLevel, forMs?: number): void => {
    cancelEnd()
    cancelEnd = () => {}
    apply(level === 'configured' ? configured : level)
    if (forMs === undefined) return
    cancelEnd = clock.after(forMs, () => {
      set('configured')
      log.info({ detail: `the log level is ${configured}` }, 'temporary log level ended')
    })
  }
  return { set, close: () => cancelEnd() }
}
