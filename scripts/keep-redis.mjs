// Starts a Redis of our own again should it end by itself: the platform's programs wait for it, and go on.

/**
 * @param {import('./redis.mjs').ResolvedRedis} redis one that is not ours is left alone
 * @param {(line: string) => void} say
 * @returns {{ stop: () => Promise<void> }} ends the newest server, and the watch
 */
export function keepRedis(redis, say) {
  if (redis.exited === undefined || redis.restart === undefined) return redis
  let current = redis
  let wanted = true
  const watch = async () => {
    while (wanted) {
      await current.exited()
      if (!wanted) return
      say('Redis has ended by itself: starting it again.')
      current = await redis.restart()
    }
  }
  watch().catch((error) => say(`Redis does not start again: ${error.message}`))
  return {
    stop() {
      wanted = false
      return current.stop()
    },
  }
}
