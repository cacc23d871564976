// Restarts the platform's private Redis when it exits unexpectedly. The API and the workers reconnect on their own.

/**
 * @param {import('./resolve.mjs').ResolvedRedis} redis a server that was not started here is left alone
 * @param {(line: string) => void} say
 * @returns {{ stop: () => Promise<void> }} `stop` ends the watch and stops the server that is running now
 */
export function restartOnExit(redis, say) {
  if (redis.exited === undefined || redis.restart === undefined) return redis
  let current = redis
  let stopped = false
  const watch = async () => {
    while (!stopped) {
      await current.exited()
      if (stopped) return
      say('Redis exited unexpectedly; restarting it.')
      current = await redis.restart()
    }
  }
  watch().catch((error) => say(`Redis could not be restarted: ${error.message}`))
  return {
    stop() {
      stopped = true
      return current.stop()
    },
  }
}
