// Decides from a server's `INFO server` whether it can run Bullpen's scripts.
import { infoField } from './server-info.ts'

/** Redis 7 introduced the first line of a script, `#!lua`, and its flags. Valkey began with 7.2. */
const OLDEST_MAJOR = 7

/**
 * Returns why the server is not supported, or undefined if it is Redis 7 or later, or Valkey. A server that does not report its
 * version is accepted, because a proxy may hide the version.
 */
export function unsupportedServer(info: string): string | undefined {
  // Valkey also reports the Redis version that it is compatible with.
  if (infoField(info, 'valkey_version') !== undefined) return undefined
  const version = infoField(info, 'redis_version')
  if (version === undefined || Number.parseInt(version, 10) >= OLDEST_MAJOR) return undefined
  return `the server is Redis ${version}; Bullpen needs Redis ${OLDEST_MAJOR} or later, or Valkey: upgrade the server or connect to another one`
}
