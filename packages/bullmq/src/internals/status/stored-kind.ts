// Encodes the kind of error that made a task dead for the scripts that end and search tasks, and decodes what they store.
import type { AttemptEndState } from '@bullpen/contract'
import { ATTEMPT_END_STATES } from '@bullpen/contract/internal'
import { type ErrorKind, errorKind } from '@bullpen/engine/internal'
import { sha256 } from '@bullpen/engine/node'
import { decodeStack, parseJson } from '../../codec.ts'

/**
 * Encodes a kind for `enter_fingerprint` (../../store/lua/includes/end/fingerprints.lua): the fingerprint, the state and the code, and then
 * JSON.
 */
export function encodeKind({ fingerprint, state, code, message }: ErrorKind): string {
  // A code is any string, but it ends where the line ends.
  return `${fingerprint} ${state} ${code.replaceAll(/\s+/g, ' ')}\n${JSON.stringify({ state, code, message })}`
}

/** What BullMQ stores as the reason of a failure, as `describeEnd` builds it (../../codec.ts). */
const DESCRIBED = new RegExp(`^(${ATTEMPT_END_STATES.join('|')})(?: \\(([^)]*)\\))?(?:: (.*))?$`, 's')

/**
 * Returns the kind of error of a job that BullMQ, or a team's own Worker, has failed, based on the reason that BullMQ stores. A job
 * whose workers died too often was lost, and any other failure is unexpected.
 */
export function kindOfReason(reason: string): ErrorKind {
  const described = DESCRIBED.exec(reason)
  if (described === null) {
    const lost = reason.startsWith('job stalled more than')
    const why = lost ? 'process_lost' : 'unexpected_error'
    return errorKind({ state: 'RECOVER_ERR', reason: why, message: reason }, undefined, sha256)
  }
  const [, state, code, message = ''] = described
  return errorKind({ state: state as AttemptEndState, code, message }, undefined, sha256)
}

/** Returns the kind of error of a dead task, based on what is stored with it. */
export function kindOfStored({
  reason,
  stacktrace,
}: {
  readonly reason: string
  readonly stacktrace: string
}): ErrorKind {
  const stacks = parseJson(stacktrace)
  const last: unknown = Array.isArray(stacks) ? stacks.at(-1) : undefined
  const record = decodeStack(last)
  if (record === undefined || typeof last !== 'string') return kindOfReason(reason)
  return errorKind(record, last.slice(last.indexOf('\n') + 1), sha256)
}

/** Returns the fingerprint in a task's field. */
export function fingerprintIn(stored: string): string {
  return stored.split(' ', 1)[0] ?? stored
}
