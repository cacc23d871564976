// Computes the digests of a caller's idempotency key and request, which a broker stores.
import { hash } from 'node:crypto'
import type { Idempotency } from '../ports/broker/new-task.ts'

export interface IdempotentCall {
  readonly key: string
  /** Who sent the key. Two callers may use the same key independently. */
  readonly caller: string
  /** The whole request, as a string. */
  readonly request: string
  /** In seconds. */
  readonly life: number
}

const KEY_CHARACTERS = 22
const REQUEST_CHARACTERS = 11

/** Returns the values that a broker needs to make this call idempotent. */
export function idempotencyOf({ key, caller, request, life }: IdempotentCall): Idempotency {
  return {
    // The length separates the caller from the key, so that two different pairs never produce the same string.
    key: digest(`${caller.length}:${caller}${key}`, KEY_CHARACTERS),
    request: requestDigest(request),
    life,
  }
}

/** Returns a short digest of a request. Two different requests have the same digest with a negligible probability. */
export function requestDigest(request: string): string {
  return digest(request, REQUEST_CHARACTERS)
}

function digest(text: string, characters: number): string {
  return hash('sha256', text, 'base64url').slice(0, characters)
}
