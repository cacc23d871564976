// Times how long Redis may take to reply. A plain timer would also count the time for which this process's event loop was blocked,
// and would fire before the process reads the replies that have arrived meanwhile.
//
// The timer therefore consists of two waits. The last one takes 100 ms, and is repeated if the event loop was blocked during it.

/** The length of the last wait, in ms. Also how late the last wait may end before it counts as blocked. */
const LAST_WAIT_MS = 100

export interface ReplyTimer {
  cancel(): void
}

/**
 * Calls `callback` after `ms`. If the event loop is blocked at that time, calls it 100 ms after the event-loop stall has ended, so that
 * commands which the stall has delayed can still be sent and answered. The process reads replies that have arrived before the callback
 * is called. The timer does not keep the process alive.
 */
export function startReplyTimer(ms: number, callback: () => void): ReplyTimer {
  const lastMs = Math.min(LAST_WAIT_MS, ms)
  let isCancelled = false
  const startLastWait = (): void => {
    const startedAt = performance.now()
    const endLastWait = (): void => {
      const wasBlocked = performance.now() - startedAt > lastMs + LAST_WAIT_MS
      if (wasBlocked) startLastWait()
      else setImmediate(afterReading)
    }
    timer = setTimeout(endLastWait, lastMs).unref()
  }
  // An immediate runs after the sockets have been read.
  const afterReading = (): void => {
    if (!isCancelled) callback()
  }
  let timer = setTimeout(startLastWait, ms - lastMs).unref()
  return {
    cancel() {
      isCancelled = true
      clearTimeout(timer)
    },
  }
}
