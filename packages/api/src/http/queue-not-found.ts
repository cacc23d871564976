// What is said of a queue that there is not, with the nearest name.
import { BullpenError } from '@bullpen/contract'
import { nearest } from '@bullpen/contract/internal'

export function noQueue(name: string, known: readonly string[]): BullpenError {
  const near = nearest(name.slice(0, 100), known)
  const hint = near === undefined ? `known are ${known.join(', ')}` : `did you mean '${near}'?`
  return new BullpenError('queue_not_found', `no queue is named ${JSON.stringify(name.slice(0, 100))}; ${hint}`)
}
