// Creates the log of a process. pino writes each line to standard output as a JSON object.

import type { LogLevel } from '@bullpen/contract'
import { type DestinationStream, type Logger, pino, stdTimeFunctions } from 'pino'
import { describeError } from './log-error.ts'
import { withoutSecrets } from './secrets.ts'

export interface LogOptions {
  readonly level: LogLevel
  /** The program that writes the log: `bullpen-api` or `bullpen-worker`. */
  readonly name: string
  /** Where lines are written. Defaults to standard output. */
  readonly destination?: DestinationStream
}

/** Creates a logger that satisfies the contract's `Log`. Levels are written as words, and times in RFC 3339 format. */
export function createLog({ level, name, destination }: LogOptions): Logger {
  const options = {
    level,
    name,
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }), log: withoutSecrets },
    serializers: { err: describeError },
  }
  return destination === undefined ? pino(options) : pino(options, destination)
}
