// A stage that collects items into arrays.
import type { Downstream, Position, StageNode, Upstream } from './node.ts'

export function createBatchNode(size: number, down: Downstream): StageNode {
  let up: Upstream | undefined
  let demand = 0
  let requested = 0
  let batch: unknown[] = []
  let first: Position = 0
  let over = false

  const fill = (): void => {
    const missing = demand * size - batch.length - requested
    if (over || !(missing > 0)) return
    requested += missing
    up?.request(missing)
  }

  return {
    connect(upstream) {
      up = upstream
    },
    request(count) {
      demand += count
      fill()
    },
    next(item, position) {
      if (over) return
      requested--
      if (batch.length === 0) first = position
      batch.push(item)
      if (batch.length < size) return
      const full = batch
      batch = []
      demand--
      down.next(full, first)
    },
    end(sourceError) {
      if (over) return
      if (batch.length > 0) down.next(batch, first)
      if (!over) down.end(sourceError)
    },
    stop() {
      over = true
      batch = []
      up?.stop()
    },
  }
}
