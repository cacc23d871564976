// A stage that calls a function for each item. It limits how many calls run and how many results wait for the next stage.
//
// A result has a place: the number of its item if results are passed on in the order of their items, and otherwise the number of
// results that were available before. `head` is the place of the next result to be passed on.
import type { MapFunction, StageContext } from '@bullpen/contract'
import type { MapStage } from '@bullpen/contract/internal'
import { promiseOf } from '../promise-of.ts'
import type { Run } from '../run.ts'
import type { Downstream, Position, StageNode, Upstream } from './node.ts'

interface Held {
  readonly value: unknown
  readonly position: Position
}

/** Stands for an item that was dropped, or that failed in a run that collects errors. */
const DROPPED: Held = { value: undefined, position: 0 }

export interface MapSettings {
  readonly ordered: boolean
  /** How many results the next stage takes in total, if it takes only so many and needs them in the order of their items. */
  readonly limit: number
}

export function createMapNode(
  { run: given, concurrency, buffer }: MapStage,
  { ordered, limit }: MapSettings,
  run: Run,
  context: StageContext,
  down: Downstream,
): StageNode {
  const call = given as MapFunction<unknown, unknown>
  const held = new Map<number, Held>()
  let up: Upstream | undefined
  let demand = 0
  let requested = 0
  let received = 0
  let running = 0
  let placed = 0
  /** How many of the held places are those of dropped items. */
  let empty = 0
  let head = 0
  let passed = 0
  let passing = false
  let sourceEnded = false
  let sourceError: Parameters<Downstream['end']>[0]
  let over = false

  /** Requests as many items as there is room for. */
  const fill = (): void => {
    if (sourceEnded || over) return
    const inside = running + held.size
    const room =
      Math.min(concurrency - running, concurrency + buffer - inside, limit - passed - inside + empty) - requested
    if (!(room > 0)) return
    requested += room
    up?.request(room)
  }

  const endIfEmpty = (): void => {
    if (!sourceEnded || over || running > 0 || held.size > 0) return
    over = true
    down.end(sourceError)
  }

  const pass = (value: unknown, position: Position): void => {
    demand--
    passed++
    down.next(value, position)
  }

  /** Passes on what is at the head, as long as it was requested. */
  const passHeld = (): void => {
    if (passing) return
    passing = true
    for (let first = held.get(head); first !== undefined && !over; first = held.get(head)) {
      if (first !== DROPPED && demand === 0) break
      held.delete(head++)
      if (first === DROPPED) empty--
      else pass(first.value, first.position)
    }
    passing = false
  }

  const put = (place: number, position: Position, value: unknown): void => {
    if (place === head && demand > 0 && !passing && value !== undefined) {
      // Most results are passed on at once, without being held.
      head++
      passing = true
      pass(value, position)
      passing = false
    } else {
      held.set(place, value === undefined ? DROPPED : { value, position })
      if (value === undefined) empty++
    }
    if (held.size > 0) passHeld()
  }

  /** Called when the call for an item has returned. `item` is its number in this stage. */
  const settle = (item: number, position: Position, value: unknown): void => {
    if (over) return
    if (value !== undefined || ordered) put(ordered ? item : placed++, position, value)
    fill()
    endIfEmpty()
  }

  const settleFailed = (item: number, position: Position, cause: unknown): void => {
    if (over) return
    run.failItem(context.stage, position, cause)
    settle(item, position, undefined)
  }

  return {
    connect(upstream) {
      up = upstream
    },
    request(count) {
      demand += count
      passHeld()
      fill()
      endIfEmpty()
    },
    next(item, position) {
      if (over) return
      requested--
      const number = received++
      let result: unknown
      try {
        result = call(item, context)
      } catch (cause) {
        return settleFailed(number, position, cause)
      }
      const promise = promiseOf(result)
      if (promise === undefined) return settle(number, position, result)
      running++
      run.begin()
      promise.then(
        (value) => {
          running--
          settle(number, position, value)
          run.end()
        },
        (cause) => {
          running--
          settleFailed(number, position, cause)
          run.end()
        },
      )
    },
    end(error) {
      sourceEnded = true
      sourceError = error
      endIfEmpty()
    },
    stop() {
      over = true
      held.clear()
      up?.stop()
    },
  }
}
