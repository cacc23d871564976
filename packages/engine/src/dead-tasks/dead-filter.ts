// Decides which dead tasks a filter matches. In Redis, scripts make the same decision
// (bullmq, store/lua/includes/end/matching-dead.lua).
import type { DeadFilter } from '../ports/broker/dead-tasks.ts'
import type { ErrorKind } from './fingerprint.ts'

/** The properties of a dead task that a filter compares. */
export interface DeadCandidate {
  readonly task: string
  readonly tags: readonly string[]
  readonly kind: Omit<ErrorKind, 'message'>
  /** The unmasked message of the error. */
  readonly message: string
  /** Milliseconds since 1970. */
  readonly endedAt: number
}

/** Returns whether the filter matches a dead task in its queue. */
export function matchesDead(filter: DeadFilter, { task, tags, kind, message, endedAt }: DeadCandidate): boolean {
  const { endedFrom = Number.NEGATIVE_INFINITY, endedUntil = Number.POSITIVE_INFINITY, text } = filter
  if (endedAt < endedFrom || endedAt > endedUntil) return false
  if (filter.task !== undefined && filter.task !== task) return false
  if (filter.tag !== undefined && !tags.includes(filter.tag)) return false
  if (filter.fingerprint !== undefined && filter.fingerprint !== kind.fingerprint) return false
  if (filter.state !== undefined && filter.state !== kind.state) return false
  if (filter.code !== undefined && filter.code !== kind.code) return false
  return text === undefined || lowerAscii(message).includes(lowerAscii(text))
}

/** Lowers only A to Z, as Redis's scripts do. */
export function lowerAscii(text: string): string {
  return text.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase())
}
