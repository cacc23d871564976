// Takes items from a source and emits them into its run, as far as the run has room for them. If the first stage takes batches,
// the items are put into batches here, so that the run never holds them one by one.
//
// A source may be run again at any time: because its process has died, because a deploy has interrupted it, or because it was ended here
// to free its slot. It then continues after the last emitted item. If that item had a cursor, the source resumes there itself. Otherwise,
// the source yields all its items again, and the driver skips those that were emitted before. In both cases, the driver checks whether the
// source continues where it was (./source-trace.ts).
//
// A batch that is not full is not emitted, because the source may yield further items when it runs again. If an error of the
// source ends its task, the items of this batch are emitted, like all others that the source has yielded before the error. If
// the process dies between this and the end of the task, the source runs again, and this batch stays shorter than those that
// may follow.
//
// A source that has to wait would keep a slot from the stages that it waits for. It therefore waits only about as long as running it
// again would take, so that waiting and repeating together at most double its work. A run that is within one process has no slots, and its
// source waits for as long as it takes.
import { TaskError } from '@bullpen/contract'
import { described, EXPECTED_ITERABLE, isIterable, unmarked } from '@bullpen/contract/internal'
import type { z } from 'zod'
import type { Attempt } from '../attempt/attempt.ts'
import type { DecodedTask } from '../attempt/decode.ts'
import type { Emission, RunAccess, SourcePosition } from '../ports/broker/runs.ts'
import type { Clock } from '../ports/clock.ts'
import type { Sha256 } from '../task/digest.ts'
import { endsTask } from '../verdict/verdict.ts'
import { repeatCall } from './repeat-call.ts'
import { runOfToken } from './run-task.ts'
import { createSourceTrace, invalidItem } from './source-trace.ts'

export type Source = (input: unknown, attempt: Attempt, cursor: unknown) => Iterable<unknown> | AsyncIterable<unknown>

/** What the driver needs from the attempt of a source. */
export type SourceAttempt = Pick<
  Attempt,
  'input' | 'name' | 'fencingToken' | 'signal' | 'heartbeat' | 'checkpoint' | 'fetched'
> & {
  readonly decoded: Pick<DecodedTask, 'definition' | 'retry' | 'totalTimeoutAt'>
  readonly clock: Clock
  readonly sha256: Sha256
}

/** The most items, and about the most bytes, that are emitted together. */
const MAX_PAGE = { items: 100, bytes: 262_144 }
/** How long an item waits for others, in ms, so that a slow source does not hold its items back. */
const PAGE_MS = 20
/** The shortest time, in ms, for which a source waits for room before it frees its slot. */
const MIN_WAIT_MS = 1_000
/** How long a source runs in one task, in ms, or ten times as long as it takes to run it again, so that no deploy waits for long. */
const SEGMENT_MS = 60_000
/** The same in quarantine, where no other task runs in the worker. The next task of the source is not quarantined any more. */
const ALONE_MS = 1_000

/** What is emitted together next. */
interface EmissionPage {
  /** Items, or full batches of items. The source's last batch can be shorter. */
  readonly values: string[]
  /** How many items the values contain. */
  count: number
  bytes: number
  /** The digest and the cursor after the last of these items. */
  digest: string
  cursor: string
  /** Resolves when the page must not wait for further items. Undefined until it waits. */
  due: Promise<'due'> | undefined
}

/**
 * Runs a source until it has yielded its last item, until its run does not need it any more, or until another task of the source should
 * go on later.
 *
 * @throws TaskError `source_changed` if the source does not yield the same items again, or does not go on after its cursor, `invalid_item`
 * if an item does not match its schema or lacks a cursor, or what the source throws.
 */
export async function driveSource(
  attempt: SourceAttempt,
  { access, place }: { readonly access: RunAccess; readonly place: { readonly id: string; readonly position: number } },
  schema: z.ZodType,
  source: Source,
): Promise<undefined> {
  const { clock, sha256, name, fencingToken } = attempt
  const run = runOfToken(place.id)
  const begunAt = clock.monotonic()

  const emit = async (emission: Omit<Emission, 'segment' | 'fencingToken'>): Promise<SourcePosition | undefined> => {
    const whole = { segment: place.position, fencingToken, ...emission }
    const position = await repeatCall(attempt, () => access.emit(run, whole))
    if (position === 'fenced')
      throw new TaskError('source_replaced', `another attempt of ${name} has replaced this one`)
    return position === 'stopped' ? undefined : position
  }

  const opened = await emit({ from: 0, values: [], count: 0, digest: '', cursor: '', isLast: false })
  if (opened === undefined) return undefined
  let { emitted, free } = opened
  const { cursor: resumesAt } = opened
  const trace = createSourceTrace({ name, access, sha256, opened })
  const newPage = (): EmissionPage => ({ values: [], count: 0, bytes: 0, digest: '', cursor: '', due: undefined })
  let page = newPage()
  /** The items of a batch that is not full. If the source runs again, it yields them again. */
  let batch: unknown[] = []

  const add = (yielded: unknown): void => {
    const marked = unmarked(yielded)
    const item = itemOf(marked.item, schema, name, emitted + page.count + batch.length)
    trace.add(item, marked.cursor)
    if (opened.batch === 0) addValue(item, 1)
    else if (batch.push(item) === opened.batch) addBatch()
  }

  const addBatch = (): void => {
    addValue(batch, batch.length)
    batch = []
  }

  /** Adds the batch that is not full, unless its last item is what cannot be encoded. */
  const addRest = (): void => {
    try {
      addBatch()
    } catch {
      // The source's own error is thrown.
    }
  }

  /** Adds an item or a batch to the page. If it cannot be encoded, the page stays as it is, because it is still emitted. */
  const addValue = (item: unknown, count: number): void => {
    const value = access.encode(item)
    page.values.push(value)
    page.count += count
    page.bytes += value.length
    page.digest = trace.digest
    page.cursor = trace.cursor
  }

  /** Emits the page. Resolves with false if the source should end. */
  const flush = async (isLast: boolean): Promise<boolean> => {
    if (isLast && batch.length > 0) addBatch()
    const { values, count } = page
    const position = await emit({ from: emitted, values, count, digest: page.digest, cursor: page.cursor, isLast })
    page = newPage()
    if (position === undefined) return false
    ;({ emitted, free } = position)
    return true
  }

  /** Waits until the run has room, for at most this time. Resolves with false if the source should end. */
  const hasRoom = async (limitMs: number): Promise<boolean> => {
    const over = new AbortController()
    const stop = clock.after(limitMs, () => over.abort())
    const signal = AbortSignal.any([attempt.signal, over.signal])
    try {
      while (free <= 0 && !over.signal.aborted) {
        await repeatCall(attempt, () => access.untilCredits(run, signal))
        if (!(await flush(false))) return false
      }
    } finally {
      stop()
    }
    return free > 0
  }

  /** Waits until the run has room. Resolves with false if the source should end. */
  const untilRoom = async (): Promise<boolean> => {
    while (free <= 0) {
      await repeatCall(attempt, () => access.untilCredits(run, attempt.signal))
      if (!(await flush(false))) return false
    }
    return true
  }

  const cursor = resumesAt === '' ? undefined : access.decode(resumesAt)
  const items = iterate(checked(source(attempt.input, attempt as Attempt, cursor), name))
  try {
    if (resumesAt === '') {
      for (let i = 0; i < emitted; i++) {
        const { done, value } = await items.next()
        if (done !== true) trace.add(itemOf(unmarked(value).item, schema, name, i), undefined)
        attempt.checkpoint()
      }
      if (trace.digest !== opened.digest) throw sourceChanged(name, emitted)
    }
    const restartMs = clock.monotonic() - begunAt
    const limitMs =
      attempt.fetched.apart === 'alone' ? Math.max(ALONE_MS, restartMs) : Math.max(SEGMENT_MS, 10 * restartMs)
    const isOver = (): boolean => !access.sourceMayWait && clock.monotonic() - begunAt > limitMs
    let next = handled(items.next())
    for (;;) {
      if (free <= 0) {
        const goesOn = access.sourceMayWait ? untilRoom() : hasRoom(Math.max(MIN_WAIT_MS, restartMs))
        if (!(await goesOn)) return undefined
      }
      if (page.values.length > 0) {
        page.due ??= after(clock, PAGE_MS)
        if ((await Promise.race([next.catch(() => {}), page.due])) === 'due') {
          if (!(await flush(false)) || isOver()) return undefined
          continue
        }
      }
      let found: IteratorResult<unknown>
      try {
        found = await next
        if (found.done !== true) add(found.value)
      } catch (error) {
        // The items that the source has yielded before its error pass through all stages.
        if (batch.length > 0 && endsTask(attempt, error)) addRest()
        if (page.values.length > 0) await flush(false)
        throw error
      }
      const { done } = found
      if (done !== true) {
        next = handled(items.next())
        const isFull = page.values.length >= Math.min(free, MAX_PAGE.items) || page.bytes >= MAX_PAGE.bytes
        if (!isFull) continue
      }
      if (!(await flush(done === true)) || done === true) return undefined
      if (isOver()) return undefined
    }
  } finally {
    await items.return?.()
  }
}

/** Prevents an error that has not been awaited yet from counting as unhandled. */
function handled<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {})
  return promise
}

function after(clock: Clock, ms: number): Promise<'due'> {
  return new Promise((resolve) => {
    clock.after(ms, () => resolve('due'))
  })
}

async function* iterate(items: Iterable<unknown> | AsyncIterable<unknown>): AsyncGenerator<unknown, void> {
  yield* items
}

function checked(returned: Iterable<unknown> | AsyncIterable<unknown>, name: string): typeof returned {
  // Plain JavaScript may return anything.
  if (isIterable(returned)) return returned
  throw new TaskError('invalid_handler', `${name} returned ${described(returned)}; ${EXPECTED_ITERABLE}`, {
    retryable: false,
  })
}

function itemOf(yielded: unknown, schema: z.ZodType, name: string, position: number): unknown {
  const parsed = schema.safeParse(yielded)
  if (parsed.success && parsed.data !== undefined) return parsed.data
  const places = parsed.error?.issues.map(({ path, message }) => `${['item', ...path].join('.')}: ${message}`) ?? []
  throw invalidItem(
    `item ${position} of ${name} does not match the schema in its definition: ${places.join('; ') || 'it is undefined'}`,
  )
}

function sourceChanged(name: string, emitted: number): TaskError {
  return new TaskError(
    'source_changed',
    `${name} was run again and its first ${emitted} items are not the same as before; yield the same items for the same input, or yield them with cursors`,
    { retryable: false },
  )
}
