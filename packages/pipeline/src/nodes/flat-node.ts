// A stage that passes on each element of arrays.
import type { Run } from '../run.ts'
import type { Downstream, Position, StageNode, Upstream } from './node.ts'

export function createFlatNode(stage: string, run: Run, down: Downstream): StageNode {
  let up: Upstream | undefined
  let demand = 0
  let elements: readonly unknown[] = []
  let index = 0
  let position: Position = 0
  let requested = false
  let passing = false
  let sourceEnded = false
  let sourceError: Parameters<Downstream['end']>[0]
  let over = false

  const pass = (): void => {
    if (passing) return
    passing = true
    while (!over) {
      if (index < elements.length) {
        if (demand === 0) break
        demand--
        const at = index++
        down.next(elements[at], `${position}.${at}`)
      } else if (sourceEnded) {
        over = true
        down.end(sourceError)
      } else {
        if (requested || demand === 0) break
        requested = true
        up?.request(1)
      }
    }
    passing = false
  }

  return {
    connect(upstream) {
      up = upstream
    },
    request(count) {
      demand += count
      pass()
    },
    next(item, itemPosition) {
      if (over) return
      requested = false
      if (Array.isArray(item)) {
        elements = item
        index = 0
        position = itemPosition
      } else {
        run.failItem(stage, itemPosition, new TypeError(`the item is a ${typeof item}; flat expects arrays`))
      }
      pass()
    },
    end(error) {
      sourceEnded = true
      sourceError = error
      pass()
    },
    stop() {
      over = true
      elements = []
      up?.stop()
    },
  }
}
