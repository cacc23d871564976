// What `ctx.snooze` throws, to leave the handler: not a failure, but a wish to be started later.
import { type Duration, formatDuration, milliseconds } from '@bullpen/contract'

export class Snooze extends Error {
  override readonly name = 'Snooze'
  readonly delayMs: number

  /** @throws BullpenError `invalid_duration`. */
  constructor(delay: Duration) {
    const delayMs = milliseconds(delay, 'the delay of snooze')
    super(`the handler asked to be started again in ${formatDuration(delayMs)}`)
    this.delayMs = delayMs
  }
}
