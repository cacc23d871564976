// Defines what takes the items of a run's last stage.
import type { Downstream, Upstream } from '../nodes/node.ts'

export interface Sink extends Downstream {
  /** Called once, before anything else. */
  connect(up: Upstream): void
}

/** A sink that takes all items by itself. */
export interface OutputSink extends Sink {
  /** Requests the first items. */
  start(): void
  /** What the run returns. Available when the run has settled without an error. */
  output(): unknown
}
