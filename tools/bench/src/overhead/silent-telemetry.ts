// Replaces `@bullpen/telemetry/internal` in a process whose metrics and logs are off: no event is counted, and no line is written.
import type * as Real from '@bullpen/telemetry/internal'

/** Whatever this module does not replace is the real one. */
export * from '@bullpen/telemetry/internal'

type Telemetry = ReturnType<typeof Real.createTelemetry>
type Summaries = ReturnType<typeof Real.summarizeAttempts>
type Logger = ReturnType<typeof Real.createLog>

const nothing = (): void => {}

/** An object whose methods all do nothing. A process without metrics is not scraped, so nothing is missing. */
const idle = new Proxy({}, { get: () => nothing })

export const createTelemetry = (): Telemetry => idle as Telemetry
export const summarizeAttempts = (): Summaries => idle as Summaries

/** Errors are still shown, because a benchmark whose tasks fail measures nothing. */
export function createLog(): Logger {
  const log = { level: 'silent', trace: nothing, debug: nothing, info: nothing, warn: nothing, error: console.error }
  return { ...log, fatal: console.error, isLevelEnabled: () => false, child: createLog } as unknown as Logger
}

export const logEvents = () => nothing
