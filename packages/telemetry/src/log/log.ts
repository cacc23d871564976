// The log of a process: one JSON object per line on standard output, written by pino.

import type { LogLevel } from '@bullpen/contract'
import { type DestinationStream, type Logger, pino, stdTimeFunctions } from 'pino'
import { describeError } from './log-error.ts'

export interface LogOptions {
  readonly level: LogLevel
  /** The program that writes: `bullpen-api` or `bullpen-worker`. */
  readonly name: string
  /** Where lines go. Default: standard output. */
  readonly destination?: DestinationStream
}

/** Header names, as frameworks and clients spell them. */
const SECRET_HEADERS = ['authorization', 'Authorization', 'cookie', 'Cookie', 'set-cookie', 'x-api-key', 'X-Api-Key']
const SECRETS = ['', 'headers', 'req.headers', '*.headers', '*.*.headers'].flatMap((place) =>
  SECRET_HEADERS.map((name) => `${place}["${name}"]`),
)

/** A `Log` of the contract: fields first, then the message. Levels are written as words, times as RFC 3339. */
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
