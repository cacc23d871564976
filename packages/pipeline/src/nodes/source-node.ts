// The first stage of a run: iterates the source, and reads an item only when one was requested.
import { type AnyIterable, PipelineError, type StageContext } from '@bullpen/contract'
import { described, EXPECTED_ITERABLE, isIterable } from '@bullpen/contract/internal'
import { promiseOf } from '../promise-of.ts'
import type { Run } from '../run.ts'
import type { Downstream, Upstream } from './node.ts'

type Opened = AnyIterable<unknown> | PromiseLike<AnyIterable<unknown>>
type Step = IteratorResult<unknown>

/** `open` returns the iterable. It is called when the first item is requested. */
export function createSourceNode(
  open: (context: StageContext) => Opened,
  run: Run,
  context: StageContext,
  down: Downstream,
): Upstream {
  let iterator: Iterator<unknown> | AsyncIterator<unknown> | undefined
  /** Whether the source may return promises: when it is opened, and when it is read if it is an asynchronous iterable. */
  let mayWait = true
  let demand = 0
  let position = 0
  /** Whether items are being read, further up on the stack or when a promise settles. */
  let busy = false
  /** Whether the source's own code is on the stack. A generator cannot be closed while it runs. */
  let inSource = false
  let ended = false
  let stopped = false

  const error = (cause: unknown): PipelineError =>
    new PipelineError('source_failed', cause, { pipeline: run.pipeline, stage: context.stage })

  const fail = (cause: unknown): void => {
    if (ended) return
    ended = true
    if (!stopped) down.end(error(cause))
  }

  /** Closes the iterator, so that the `finally` blocks of a generator run, and makes the run wait for them. */
  const close = (): void => {
    if (iterator === undefined || ended) return
    ended = true
    try {
      const closed = promiseOf(iterator.return?.())
      if (closed === undefined) return
      run.begin()
      closed.then(run.end, (cause) => {
        run.fail(error(cause))
        run.end()
      })
    } catch (cause) {
      run.fail(error(cause))
    }
  }

  const start = (iterable: AnyIterable<unknown>): void => {
    try {
      // Plain JavaScript may return anything.
      if (!isIterable(iterable)) throw new TypeError(`the source returned ${described(iterable)}; ${EXPECTED_ITERABLE}`)
      mayWait = Symbol.asyncIterator in iterable
      iterator = Symbol.asyncIterator in iterable ? iterable[Symbol.asyncIterator]() : iterable[Symbol.iterator]()
    } catch (cause) {
      fail(cause)
    }
    if (stopped) close()
  }

  const receive = (step: Step): void => {
    if (stopped) return
    if (typeof step !== 'object' || step === null) {
      fail(new TypeError(`the iterator of the source returned ${String(step)}; expected an object`))
    } else if (step.done) {
      ended = true
      down.end(undefined)
    } else {
      demand--
      down.next(step.value, position++)
    }
  }

  /** Opens the source, or reads its next item. */
  const advance = (): Opened | Step | PromiseLike<Step> | undefined => {
    inSource = true
    try {
      return iterator === undefined ? open(context) : iterator.next()
    } catch (cause) {
      fail(cause)
      return undefined
    } finally {
      inSource = false
      if (stopped) close()
    }
  }

  const goOnWith = (promise: Promise<unknown>, act: (value: unknown) => void): void => {
    run.begin()
    promise.then(
      (value) => {
        act(value)
        busy = false
        read()
        run.end()
      },
      (cause) => {
        fail(cause)
        run.end()
      },
    )
  }

  const read = (): void => {
    if (busy) return
    busy = true
    run.begin()
    let waits = false
    while (demand > 0 && !waits && !stopped && !ended) {
      const act = (iterator === undefined ? start : receive) as (result: unknown) => void
      const result = advance()
      if (ended) break
      const promise = mayWait ? promiseOf(result) : undefined
      waits = promise !== undefined
      if (promise === undefined) act(result)
      else goOnWith(promise, act)
    }
    busy = waits
    run.end()
  }

  return {
    request(count) {
      demand += count
      read()
    },
    stop() {
      stopped = true
      if (!inSource) close()
    },
  }
}
