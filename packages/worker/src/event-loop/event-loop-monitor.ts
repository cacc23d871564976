// Watches the main thread's event loop from a thread of its own: a handler that never returns stops every timer here.
import { extname } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { isMainThread, Worker } from 'node:worker_threads'
import type { LogLevel } from '@bullpen/contract'
import { type Log, milliseconds } from '@bullpen/contract'
import type { EventSink } from '@bullpen/engine'
import type { AsyncContext } from '@bullpen/engine/internal'
import type { AttemptInLoop, BlockOver, WatchOrders } from './messages.ts'
import { BEAT_MS } from './stall.ts'

const SOURCE = new URL('./monitor-thread.ts', import.meta.url)
/** As source in the repository, compiled beside this file in what is published. */
const ENTRY = new URL(SOURCE.href.replace(/\.ts$/, extname(import.meta.url)))
/** What the thread may take to end by itself; it has nothing to wait for. */
const ENDING_MS = 500

let watches = 0

export interface EventLoopMonitor {
  /** Leaves nothing behind: neither thread, timer nor global. */
  close(): Promise<void>
}

export interface LoopWatchOptions {
  /** A duration, or `none` for no watch. */
  readonly warnAfter: string
  readonly context: AsyncContext
  /** Hears `event_loop.stalled` when a block is over; while it lasts, the thread writes to the log's own place. */
  readonly sink: EventSink
  readonly log: Log
  readonly logAs: { readonly level: LogLevel; readonly name: string }
}

/** Where there can be no watch, the log says so once and the worker goes on without. */
export function openEventLoopMonitor({ warnAfter, context, sink, log, logAs }: LoopWatchOptions): EventLoopMonitor {
  if (warnAfter === 'none') return { close: async () => {} }
  const unwatched = (err: unknown): void =>
    log.warn({ err }, 'the event loop is not watched: who blocks it goes unsaid')
  const shared = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)
  const hook = `bullpen.attempt-in-loop.${++watches}`
  const orders: WatchOrders = { beats: shared, warnAfterMs: milliseconds(warnAfter), hook, log: logAs }
  let thread: Worker
  try {
    // The inspector reaches the main thread from every other, and from none its neighbour.
    if (!isMainThread) throw new Error('this worker does not run in the main thread')
    // Node 24 ends the whole process when a thread looks at a main thread that was left without an inspector.
    if (process.permission?.has('inspector') === false) throw new Error('Node was started without --allow-inspector')
    // The process's own preloads and loaders are not for this thread.
    thread = new Worker(ENTRY, { workerData: orders, execArgv: [], name: 'bullpen loop watch' })
  } catch (error) {
    unwatched(error)
    return { close: async () => {} }
  }
  const ended = new Promise<void>((resolve) => thread.once('exit', () => resolve()))
  thread.unref()

  const beats = new Int32Array(shared)
  let last = performance.now()
  /** Between two beats, since a block was last told. */
  let slowestTaskMs = 0
  const beat = setInterval(() => {
    const now = performance.now()
    slowestTaskMs = Math.max(slowestTaskMs, now - last)
    last = now
    Atomics.add(beats, 0, 1)
  }, BEAT_MS).unref()
  thread.on('error', (error) => {
    clearInterval(beat)
    unwatched(error)
  })
  thread.on('message', ({ attempt, location }: BlockOver) => {
    const { task, id, fencingToken, attempt: number } = attempt ?? {}
    sink({
      event: 'event_loop.stalled',
      task,
      id,
      fencingToken,
      attempt: number,
      location,
      stalledMs: slowestTaskMs,
    })
    slowestTaskMs = 0
  })
  Object.defineProperty(globalThis, Symbol.for(hook), { value: () => answer(context), configurable: true })

  return {
    async close() {
      // Its end alone may be what this process waits for.
      thread.ref()
      thread.postMessage('end')
      clearInterval(beat)
      Reflect.deleteProperty(globalThis, Symbol.for(hook))
      await Promise.race([ended, sleep(ENDING_MS, undefined, { ref: false })])
      await thread.terminate()
    },
  }
}

/** Called by the watching thread, in the middle of whatever runs. */
function answer(context: AsyncContext): string | undefined {
  const running = context.current()
  if (running === undefined) return undefined
  const { name, id, fencingToken, attempt } = running
  return JSON.stringify({ task: name, id, fencingToken, attempt } satisfies AttemptInLoop)
}
