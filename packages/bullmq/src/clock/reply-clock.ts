// Redis's clock, as far as the replies of scripts that contain its time have shown it.
import { better, type Estimate } from './clock-estimate.ts'

export interface ReplyClock {
  /**
   * Returns the time in whole ms since 1970 by Redis's clock, or by the machine's clock until the first reply. Does not query Redis.
   */
  now(): number
  /** Learns from a reply that has just arrived. `sentAt` is when its command was sent, by `performance.now()`. */
  learn(time: number, sentAt: number): void
}

export function createReplyClock(): ReplyClock {
  let known: Estimate | undefined
  return {
    now: () => (known === undefined ? Date.now() : Math.round(performance.now() + known.offsetMs)),
    learn(time, sentAt) {
      const errorMs = (performance.now() - sentAt) / 2
      const at = sentAt + errorMs
      known = better(known, { offsetMs: time - at, errorMs, at })
    },
  }
}
