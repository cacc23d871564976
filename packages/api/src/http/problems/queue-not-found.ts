// The error for an unknown queue, with the nearest name.
import { BullpenError } from '@bullpen/contract'
import { nearest } from '@bullpen/contract/internal'

export function queueNotFound(name: string, known: readonly string[]): BullpenError {
  const quoted = JSON.stringify(name.slice(0, 100))
  const near = nearest(name.slice(0, 100), known)
  const hint = near === undefined ? `the queues are ${known.join(', ')}` : `did you mean '${near}'?`
  return new BullpenError('queue_not_found', `there is no queue ${quoted}; ${hint}`)
}
