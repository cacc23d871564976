// A log that records its lines so that a test can inspect them.
import type { Log } from '@bullpen/contract'

export interface LogLine {
  readonly level: keyof Log
  readonly message: string
  /** The line's own fields, and those that its log adds to every line. */
  readonly fields: Readonly<Record<string, unknown>>
}

export function recordingLog(): { readonly logs: readonly LogLine[]; readonly logFor: (fields: object) => Log } {
  const logs: LogLine[] = []
  const logFor = (common: object): Log => {
    const at = (level: keyof Log) => (fields: object, message: string) => {
      logs.push({ level, message, fields: { ...common, ...fields } })
    }
    return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
  }
  return { logs, logFor }
}
