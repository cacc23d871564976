// Lets the log of an API process follow the level that a command has set for all processes of the fleet. Workers follow it with their
// heartbeats, which an API process does not send.
import type { LogLevel } from '@bullpen/contract'
import { type Clock, type Fleet, HEARTBEAT_INTERVAL_MS } from '@bullpen/engine/internal'
import { type createLog, createLogLevel } from '@bullpen/telemetry/internal'

export interface FollowingLog {
  readonly log: ReturnType<typeof createLog>
  /** The level of the settings. */
  readonly configured: LogLevel
  readonly clock: Clock
}

/**
 * Reads the level as often as a worker sends heartbeats, until the returned function is called. While Redis is unreachable, the
 * level stays.
 */
export function followLogLevel(fleet: Pick<Fleet, 'logLevel'>, { log, configured, clock }: FollowingLog): () => void {
  const apply = (level: LogLevel): void => {
    log.level = level
  }
  const control = createLogLevel({ configured, apply, clock, log })
  const read = (): void => void fleet.logLevel().then(control.follow, () => {})
  read()
  const timer = setInterval(read, HEARTBEAT_INTERVAL_MS).unref()
  return () => {
    clearInterval(timer)
    control.close()
  }
}
