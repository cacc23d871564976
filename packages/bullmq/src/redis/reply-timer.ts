// Times how long Redis may take to reply. A plain timer would also count the time for which this process's event loop was blocked,
// and would fire before the replies that have arrived meanwhile are read.

/** How long Redis has to reply at the end of its time while the event loop is not blocked, in ms. */
const LAST_MS = 100

export interface ReplyTimer {
  cancel(): void
}

/**
 * Calls `callback` after `ms`. If the event loop is blocked for longer, Redis has 100 ms from the end of the block, in which commands
 * are written that the block has held back. Replies that have arrived are read before the callback. The timer does not keep the
 * process alive.
 */
export function startReplyTimer(ms: number, callback: () => void): ReplyTimer {
  const lastMs = Math.min(LAST_MS, ms)
  let isCancelled = false
  const giveLast = (): void => {
    const startedAt = performance.now()
    const hasPassed = (): void => {
      const wasBlocked = performance.now() - startedAt > lastMs + LAST_MS
      if (wasBlocked) giveLast()
      else setImmediate(afterReading)
    }
    timer = setTimeout(hasPassed, lastMs).unref()
  }
  // An immediate runs after the sockets have been read.
  const afterReading = (): void => {
    if (!isCancelled) callback()
  }
  let timer = setTimeout(giveLast, ms - lastMs).unref()
  return {
    cancel() {
      isCancelled = true
      clearTimeout(timer)
    },
  }
}
