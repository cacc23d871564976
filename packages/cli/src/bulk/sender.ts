// Sends the tasks of a bulk enqueue to the API. Tasks that were refused for a temporary reason are sent again, after a pause.
//
// Every request has an idempotency key, so that sending a task again never stores it twice. The API closes a connection over which a
// request does not arrive within seconds. Requests therefore begin small, grow as long as the connection is fast, and shrink when a
// request fails. If the API refuses a request as a whole because of its size or its content, the lines are divided until the request
// is accepted or has a single line, which is then rejected.
import { setTimeout as sleep } from 'node:timers/promises'
import { type BulkEnqueued, type Client, ProblemError } from '@bullpen/client'
import type { Duration } from '@bullpen/contract'
import { MAX_BULK_TASKS } from '@bullpen/contract/internal'
import { isTemporary } from '../temporary-error.ts'
import { blockOf, firstPart, indexOf, tasksOf } from './blocks.ts'
import type { TaskLine } from './task-lines.ts'

/** The longest line, and about the largest request, in bytes: the API's default limit of 4 MiB, minus the rest of the request. */
export const MAX_REQUEST_BYTES = 4 * 1_048_576 - 65_536
const INITIAL_REQUEST_BYTES = 524_288
const LEAST_REQUEST_BYTES = 1_024
/** A request that took less time than this is followed by a larger one, in ms. */
const FAST_MS = 500

const INITIAL_DELAY_MS = 100
const MAX_DELAY_MS = 2_000

export interface SenderOptions {
  readonly client: Pick<Client, 'enqueueBulkNamed'>
  /** The key of each request begins with it. */
  readonly key: string
  readonly keyLife: Duration | undefined
  /** How long to send the same tasks again while none is accepted, in ms. */
  readonly retryForMs: number
  /** Called once for each line, with its final result. */
  readonly onResult: (line: TaskLine, result: BulkEnqueued) => Promise<void>
  /** Called before each pause. */
  readonly onWait: (error: ProblemError) => void
  /** Stops sending. A request that is in progress is completed. */
  readonly signal: AbortSignal
}

/**
 * Sends tasks of one block. Resolves when each has its result.
 *
 * @throws ProblemError if the API rejects the request, or if it accepts no task for `retryForMs`.
 */
export type Send = (lines: readonly TaskLine[]) => Promise<void>

/** The outcome of one request. */
interface Sent {
  readonly accepted: number
  /** The lines to send again. */
  readonly unsettled: readonly TaskLine[]
  /** The temporary reason why these lines have to be sent again. */
  readonly error?: ProblemError | undefined
  /** Whether fewer of the lines may be accepted at once. */
  readonly mustSplit?: boolean
}

export function createSender(options: SenderOptions): Send {
  const { retryForMs, onWait, signal } = options
  let maxBytes = INITIAL_REQUEST_BYTES
  let maxLines = MAX_BULK_TASKS
  return async (lines) => {
    let pending = lines
    let delay = INITIAL_DELAY_MS
    let giveUpAt = performance.now() + retryForMs
    while (pending.length > 0 && !signal.aborted) {
      const startedAt = performance.now()
      const part = firstPart(pending, maxBytes).slice(0, maxLines)
      const { accepted, unsettled, error, mustSplit = false } = await sendOnce(options, part)
      pending = [...unsettled, ...pending.slice(part.length)]
      if (mustSplit) {
        maxLines = Math.ceil(part.length / 2)
        continue
      }
      const endedAt = performance.now()
      if (accepted > 0) {
        giveUpAt = endedAt + retryForMs
        delay = INITIAL_DELAY_MS
      }
      if (accepted === 0 && error !== undefined) maxBytes = Math.max(LEAST_REQUEST_BYTES, sizeOf(part) / 2)
      else if (endedAt - startedAt < FAST_MS) {
        maxBytes = Math.min(2 * maxBytes, MAX_REQUEST_BYTES)
        maxLines = Math.min(2 * maxLines, MAX_BULK_TASKS)
      }
      if (error === undefined) continue
      const leftMs = giveUpAt - endedAt
      const requestedMs = error.retryAfterMs ?? 0
      if (leftMs <= 0 || requestedMs > leftMs) throw error
      onWait(error)
      // The last try begins when the time is over.
      await sleep(Math.ceil(Math.min(Math.max(delay, requestedMs), leftMs)))
      delay = Math.min(2 * delay, MAX_DELAY_MS)
    }
  }
}

async function sendOnce({ client, key, keyLife, onResult }: SenderOptions, part: readonly TaskLine[]): Promise<Sent> {
  const [first] = part
  const idempotency = {
    idempotencyKey: `${key}/${first === undefined ? 0 : blockOf(first)}`,
    ...(keyLife !== undefined && { idempotencyLife: keyLife }),
  }
  let results: readonly BulkEnqueued[]
  try {
    results = await client.enqueueBulkNamed(tasksOf(part), idempotency)
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error
    if (isTemporary(error)) return { accepted: 0, unsettled: part, error }
    if (!(isTooLarge(error) || isBadBody(error)) || first === undefined) throw error
    if (part.length > 1) return { accepted: 0, unsettled: part, mustSplit: true }
    await onResult(first, { error })
    return { accepted: 0, unsettled: [] }
  }
  const settled = part.map((line) => ({ line, result: results[indexOf(line)] }))
  const unsettled: TaskLine[] = []
  let accepted = 0
  let temporary: ProblemError | undefined
  for (const { line, result } of settled) {
    if (result === undefined) throw new TypeError(`the response has no result for line ${line.number}`)
    if ('error' in result && isTemporary(result.error)) {
      unsettled.push(line)
      temporary ??= result.error
      continue
    }
    if (!('error' in result)) accepted += 1
    await onResult(line, result)
  }
  return { accepted, unsettled, error: temporary }
}

/** Returns whether the request has too many bytes, or more tasks than the API key's rate ever permits at once. */
function isTooLarge({ status }: ProblemError): boolean {
  return status === 413
}

/** Returns whether the API refuses the whole body, for which a single task may be the reason. */
function isBadBody({ code, errors }: ProblemError): boolean {
  const isInHeader = errors.some((each) => !('pointer' in each))
  return code === 'malformed_json' || (code === 'invalid_request' && !isInHeader)
}

function sizeOf(lines: readonly TaskLine[]): number {
  return lines.reduce((sum, { bytes }) => sum + bytes, 0)
}
