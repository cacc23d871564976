// Times how long Redis may take to reply. A plain timer would also count the time for which this process's event loop was blocked,
// and would fire before the replies that have arrived meanwhile are read.

/** How long Redis has to reply at the end of its time even if the event loop was blocked until then, in ms. */
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
  // An immediate runs after the sockets have been read.
  const afterReading = (): void => {
    setImmediate(() => {
      if (!isCancelled) callback()
    })
  }
  let timer = setTimeout(() => {
    timer = setTimeout(afterReading, lastMs).unref()
  }, ms - lastMs).unref()
  return {
    cancel() {
      isCancelled = true
      clearTimeout(timer)
    },
  }
}
