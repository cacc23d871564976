// Creates the log of a process. pino writes each line to standard output as a JSON object.

import type { LogLevel } from '@bullpen/contract'
import { type DestinationStream, type Logger, pino, stdTimeFunctions } from 'pino'
import { describeError } from './log-error.ts'

export interface LogOptions {
  readonly level: LogLevel
  /** The program that writes the log: `bullpen-api` or `bullpen-worker`. */
  readonly name: string
  /** Where lines are written. Defaults to standard output. */
  readonly destination?: DestinationStream
}

/** The names of headers that contain secrets, in the spellings that frameworks and clients use. */
const SECRET_HEADERS = ['authorization', 'Authorization', 'cookie', 'Cookie', 'set-cookie', 'x-api-key', 'X-Api-Key']
const SECRETS = ['', 'headers', 'req.headers', '*.headers', '*.*.headers'].flatMap((place) =>
  SECRET_HEADERS.map((name) => `${place}["${name}"]`),
)

/** Creates a logger that satisfies the contract's `Log`. Levels are written as words, and times in RFC 3339 format. */
export function createLog({ level, name, destination }: LogOptions): Logger {
  const options = {
    level,
    name,
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { err: describeError },
    redact: { paths: SECRETS, censor: '[redacted]' },
  }
  return destination === undefined ? pino(options) : pino(options, destination)
}
