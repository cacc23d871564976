// Creates the error for an unknown queue, which suggests the nearest name.
import { BullpenError } from '@bullpen/contract'
import { suggestion } from '@bullpen/contract/internal'

export function queueNotFound(name: string, known: readonly string[]): BullpenError {
  const shown = name.slice(0, 100)
  const hint = suggestion(shown, known) || `; the queues are ${known.join(', ')}`
  return new BullpenError('queue_not_found', `unknown queue ${JSON.stringify(shown)}${hint}`)
}
