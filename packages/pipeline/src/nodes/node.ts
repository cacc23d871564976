// Defines how the stages of a run are connected.
//
// Items are pulled. A stage requests a number of items from the stage above it, and receives at most that many, each with a call of
// `next`. Requests add up. All calls are synchronous. A stage may call `request` while it receives an item. A stage that is
// already passing on items then only adds to what was requested, and continues in its loop, so the depth of the stack does not depend
// on the number of items.
import type { PipelineError } from '@bullpen/contract'

/** The number that the source gave an item, or this number and the indexes of its array elements, such as `17.3`. */
export type Position = number | string

/** What a stage sees of the one that its items come from. */
export interface Upstream {
  /** Allows `count` more calls of `next`. */
  request(count: number): void
  /** Ends the stage and all above it: no item is passed on and no function is called any more. Idempotent. */
  stop(): void
}

/** What a stage sees of the one that takes its items. */
export interface Downstream {
  next(item: unknown, position: Position): void
  /** Called once, after the last item. The error is that of the source, and is reported only after all results. */
  end(sourceError: PipelineError | undefined): void
}

export interface StageNode extends Downstream, Upstream {
  /** Called once, before anything else. */
  connect(up: Upstream): void
}
