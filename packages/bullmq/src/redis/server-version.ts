// Decides whether a server can run Bullpen's scripts, from what it says about itself in `INFO server`.

/** Redis 7 introduced the first line of a script, `#!lua`, and its flags. Valkey began with 7.2. */
const OLDEST_MAJOR = 7

/**
 * Returns what is wrong with the server, or undefined if it is Redis 7 or later, or Valkey. A server that does not state its version
 * is accepted, because a proxy may hide it.
 */
export function unsupportedServer(info: string): string | undefined {
  // Valkey also states the version of Redis with which it is compatible.
  if (fieldOf(info, 'valkey_version') !== undefined) return undefined
  const version = fieldOf(info, 'redis_version')
  if (version === undefined || Number.parseInt(version, 10) >= OLDEST_MAJOR) return undefined
  return `the server is Redis ${version}; Bullpen needs Redis ${OLDEST_MAJOR} or later, or Valkey: upgrade the server or connect to another one`
}

function fieldOf(info: string, name: string): string | undefined {
  return new RegExp(`^${name}:(\\S+)`, 'm').exec(info)?.[1]
}
