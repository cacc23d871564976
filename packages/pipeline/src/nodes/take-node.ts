// A stage that passes on a number of items, and then stops the stages above it.
import type { Downstream, StageNode, Upstream } from './node.ts'

/** `abort` aborts the signals of the stages above. */
export function createTakeNode(count: number, abort: () => void, down: Downstream): StageNode {
  let up: Upstream | undefined
  let missing = count
  /** How many items may still be requested. */
  let left = count
  let over = false
  let stopped = false

  return {
    connect(upstream) {
      up = upstream
    },
    request(wanted) {
      const allowed = Math.min(wanted, left)
      if (over || allowed === 0) return
      left -= allowed
      up?.request(allowed)
    },
    next(item, position) {
      missing--
      if (missing > 0) return down.next(item, position)
      over = true
      abort()
      up?.stop()
      // A listener of the signal, or the source while it closes, may have failed the run.
      if (stopped) return
      down.next(item, position)
      down.end(undefined)
    },
    end(sourceError) {
      if (over) return
      over = true
      down.end(sourceError)
    },
    stop() {
      over = true
      stopped = true
      up?.stop()
    },
  }
}
