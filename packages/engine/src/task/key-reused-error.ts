// Defines the error for an idempotency key that was used for two different requests.
import { BullpenError } from '@bullpen/contract'

export function keyReused(queue: string): BullpenError {
  return new BullpenError(
    'idempotency_key_reused',
    `the Idempotency-Key was already used for a different request to queue '${queue}'; use a new key for a new task`,
  )
}
