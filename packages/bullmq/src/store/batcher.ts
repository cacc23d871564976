// Gathers calls into batches, each of which is one command: the calls of one turn of the event loop, and those that come while a batch is
// on its way.

export interface BatchedCall {
  /** About how many bytes the call sends. */
  readonly bytes: number
}

/** One batch of this size has nearly all of the gain, and keeps Redis busy for less than a millisecond. */
const MAX_CALLS = 16
const MAX_BYTES = 256 * 1_024

/** Calls wait for a batch that is on its way only if its reply comes this soon, so that a distant Redis delays no call twice. */
const SHORT_ROUND_TRIP_MS = 5

/**
 * Returns a function that takes a call and returns at once. `send` sends a batch and settles its calls; it must not reject. A lone call is
 * sent at the end of its turn; no call waits for a timer. A full batch is sent at once, even if others are on their way, so that Redis
 * begins while the process is still busy with its turn.
 */
export function createBatcher<Call extends BatchedCall>(
  send: (calls: readonly Call[]) => Promise<void>,
): (call: Call) => void {
  let waiting: Call[] = []
  let bytes = 0
  let inFlight = 0
  let isScheduled = false
  /** The shortest round trip of late. A busy Redis or process makes single ones longer. */
  let roundTripMs = Number.POSITIVE_INFINITY

  const isFull = (): boolean => waiting.length >= MAX_CALLS || bytes >= MAX_BYTES

  function flush(): void {
    isScheduled = false
    while (waiting.length > 0 && (inFlight === 0 || isFull() || roundTripMs > SHORT_ROUND_TRIP_MS)) sendNext()
  }

  function sendNext(): void {
    const batch = takeBatch()
    const sentAt = performance.now()
    inFlight++
    void send(batch).then(() => {
      inFlight--
      roundTripMs = Math.min(performance.now() - sentAt, roundTripMs * 1.1)
      flush()
    })
  }

  /** A call that is larger than a batch is a batch of its own. */
  function takeBatch(): readonly Call[] {
    let size = 0
    let count = 0
    for (const call of waiting.slice(0, MAX_CALLS)) {
      if (count > 0 && size + call.bytes > MAX_BYTES) break
      size += call.bytes
      count++
    }
    const batch = waiting.slice(0, count)
    waiting = waiting.slice(count)
    bytes -= size
    return batch
  }

  return (call) => {
    waiting.push(call)
    bytes += call.bytes
    if (isFull()) sendNext()
    if (isScheduled) return
    isScheduled = true
    // Runs after the callbacks of all promises that are already resolved.
    process.nextTick(flush)
  }
}
