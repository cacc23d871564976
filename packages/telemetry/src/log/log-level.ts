// Changes the level of a process's log while the process runs.
import type { Log, LogLevel } from '@bullpen/contract'
import type { CommandedLevel } from '@bullpen/contract/internal'
import type { Clock, LogLevelOverride } from '@bullpen/engine/internal'

export interface LogLevelControl {
  /**
   * Sets the level until the process exits or, if `forMs` is given, for that time. `configured` stands for the level of the settings. An
   * earlier change no longer ends.
   */
  set(level: CommandedLevel, forMs?: number | undefined): void
  /**
   * Follows the level of all processes, as last read: each of them once, so that a later change of this process alone stays. Once there is
   * none any more, the configured level applies.
   */
  follow(override: LogLevelOverride | undefined): void
  /** Cancels the end of the last change. */
  close(): void
}

export interface LogLevelOptions {
  /** The level of the settings. */
  readonly configured: LogLevel
  readonly apply: (level: LogLevel) => void
  readonly clock: Pick<Clock, 'after' | 'now'>
  readonly log: Pick<Log, 'info'>
}

export function createLogLevel({ configured, apply, clock, log }: LogLevelOptions): LogLevelControl {
  let cancelEnd = (): void => {}
  let endsLater = false
  const set = (level: CommandedLevel, forMs?: number): void => {
    cancelEnd()
    cancelEnd = () => {}
    endsLater = forMs !== undefined
    apply(level === 'configured' ? configured : level)
    if (forMs === undefined) return
    cancelEnd = clock.after(forMs, () => {
      set('configured')
      log.info({ detail: `the log level is ${configured}` }, 'temporary log level ended')
    })
  }
  let followed: string | undefined
  const follow = (override: LogLevelOverride | undefined): void => {
    if (override?.command === followed) return
    followed = override?.command
    if (override === undefined) {
      const wasReset = endsLater
      set('configured')
      if (wasReset) log.info({ detail: `the log level is ${configured}` }, 'log level of all processes reset')
      return
    }
    const { command, by, level, until } = override
    // The line is written before the level may hide it.
    log.info({ command, by, detail: `the log level is ${level}` }, 'log level of all processes changed')
    set(level, Math.max(until - clock.now(), 0))
  }
  return { set, follow, close: () => cancelEnd() }
}
