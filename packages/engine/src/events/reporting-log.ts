// A handler's log whose lines also become events.
import type { Log } from '@bullpen/contract'
import { MAX_LOG_EVENTS } from '@bullpen/contract/internal'
import type { AttemptEvents } from '../ports/events.ts'
import { type LogLine, logEvent } from './event-bodies.ts'

/**
 * Returns a log that writes to `log` and reports the attempt's first {@link MAX_LOG_EVENTS} lines as events, except those of the
 * level debug. Once the attempt has ended, `isRunning` returns false and no further line becomes an event.
 */
export function reportingLog(log: Log, events: AttemptEvents, isRunning: () => boolean): Log {
  let lines = 0
  const writing =
    (level: LogLine['level']) =>
    (fields: object, message: string): void => {
      log[level](fields, message)
      if (lines >= MAX_LOG_EVENTS || !isRunning()) return
      lines++
      events.report(logEvent(events.about, { line: lines, level, fields, message: `${message}` }))
    }
  return {
    debug: (fields, message) => log.debug(fields, message),
    info: writing('info'),
    warn: writing('warn'),
    error: writing('error'),
  }
}
