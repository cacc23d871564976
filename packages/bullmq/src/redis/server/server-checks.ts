// Checks, from what a server reports about itself, whether the server keeps tasks safely.
import { infoField } from './server-info.ts'
import { unsupportedServer } from './server-version.ts'

/**
 * - `version`: the server can run Bullpen's scripts
 * - `persistence`: an append-only file holds the tasks when the server restarts
 * - `eviction`: the server does not delete keys when its memory is full
 * - `maxmemory`: the server's memory has a limit
 * - `listpack`: the server stores a task in the compact encoding of small hashes
 */
export const SERVER_CHECKS = ['version', 'persistence', 'eviction', 'maxmemory', 'listpack'] as const
export type ServerCheck = (typeof SERVER_CHECKS)[number]

/** The smallest `hash-max-listpack-value` with which most tasks' data fits into the compact encoding, in bytes. */
const LISTPACK_BYTES = 1_024

export interface ServerDescription {
  /** The output of INFO, or undefined if it is not permitted. */
  readonly info: string | undefined
  /** The value of `hash-max-listpack-value`, or undefined if CONFIG GET is not permitted. */
  readonly listpackValue: string | undefined
}

export interface CheckResult {
  readonly isOk: boolean
  readonly found: string
  readonly expected: string
}

/** Returns the result of each check for which the description has the necessary values. */
export function checkServer({ info = '', listpackValue }: ServerDescription): ReadonlyMap<ServerCheck, CheckResult> {
  const field = (name: string): string | undefined => infoField(info, name)
  const version = field('valkey_version') ?? field('redis_version')
  const appendOnly = field('aof_enabled')
  const policy = field('maxmemory_policy')
  const maxMemory = field('maxmemory')
  const results: Readonly<Record<ServerCheck, CheckResult | undefined>> = {
    version: result(version, unsupportedServer(info) === undefined, 'Redis 7 or later, or Valkey'),
    persistence: result(appendOnly && (appendOnly === '1' ? 'yes' : 'no'), appendOnly === '1', 'yes'),
    eviction: result(policy, policy === 'noeviction', 'noeviction'),
    maxmemory: result(maxMemory, maxMemory !== '0', 'a limit such as 2gb'),
    listpack: result(listpackValue, Number(listpackValue) >= LISTPACK_BYTES, String(LISTPACK_BYTES)),
  }
  return new Map(
    SERVER_CHECKS.flatMap((check) => {
      const each = results[check]
      return each === undefined ? [] : [[check, each] as const]
    }),
  )
}

function result(found: string | undefined, isOk: boolean, expected: string): CheckResult | undefined {
  return found === undefined ? undefined : { isOk, found, expected }
}
