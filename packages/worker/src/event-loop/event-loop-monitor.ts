// Monitors the main thread's event loop from another thread, because a handler that never returns stops all timers of its own
// thread.
//
// The main thread increments a shared counter with every tick. When the counter stops, the monitor thread samples the
// main thread's stack, finds the attempt through the async context, and writes both to the log.
import { extname } from 'node:path'
import { isMainThread, Worker } from 'node:worker_threads'
import { type Log, type LogLevel, milliseconds } from '@bullpen/contract'
import type { EventSink } from '@bullpen/engine'
import type { AsyncContext } from '@bullpen/engine/internal'
import { settlesWithin } from '@bullpen/engine/node'
import type { AttemptInLoop, MonitorOptions, StallOver, ToMonitor } from './messages.ts'
import { TICK_MS } from './stall-detector.ts'

const SOURCE = new URL('./stall-reporter-thread.ts', import.meta.url)
/** The thread's entry point, which is TypeScript in the repository and compiled JavaScript in the published package. */
const ENTRY = new URL(SOURCE.href.replace(/\.ts$/, extname(import.meta.url)))
/** How long the thread may take to end by itself, in ms. The limit is short because the thread does not wait for anything. */
const END_MS = 500

let monitors = 0

export interface EventLoopMonitor {
  /** Sets the level of the lines that the thread writes. */
  setLogLevel(level: LogLevel): void
  /** Ends the thread, and removes the monitor's timer and global. */
  close(): Promise<void>
}

export interface EventLoopMonitorOptions {
  /** The stall duration after which a warning is logged, or `none` to disable the monitor. */
  readonly warnAfter: string
  readonly context: AsyncContext
  /** Receives `event_loop.stalled` when a stall is over. During the stall, the thread writes to the log's own destination. */
  readonly sink: EventSink
  readonly log: Log
  readonly logAs: { readonly level: LogLevel; readonly name: string }
}

const NO_MONITOR: EventLoopMonitor = { setLogLevel() {}, close: async () => {} }

/** Opens the monitor. If the event loop can't be monitored, logs one warning and returns a monitor that does nothing. */
export function openEventLoopMonitor(options: EventLoopMonitorOptions): EventLoopMonitor {
  const { warnAfter, context, sink, log, logAs } = options
  if (warnAfter === 'none') return NO_MONITOR
  const unavailable = (err: unknown): void =>
    log.warn({ err }, 'event-loop monitor unavailable; stalls will not be reported')
  const shared = new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT)
  const hook = `bullpen.attempt-in-loop.${++monitors}`
  const workerData: MonitorOptions = { ticks: shared, warnAfterMs: milliseconds(warnAfter), hook, log: logAs }
  let thread: Worker
  try {
    // The inspector can reach only the main thread, and only from another thread.
    if (!isMainThread) throw new Error('this worker does not run in the main thread')
    // Node 24 ends the whole process when a thread connects to a main thread without an inspector.
    if (process.permission?.has('inspector') === false) throw new Error('Node was started without --allow-inspector')
    // The process's own preloads and loaders are not meant for this thread.
    thread = new Worker(ENTRY, { workerData, execArgv: [], name: 'bullpen event-loop monitor' })
  } catch (error) {
    unavailable(error)
    return NO_MONITOR
  }
  const exited = new Promise<void>((resolve) => thread.once('exit', () => resolve()))
  thread.unref()

  const ticks = new Int32Array(shared)
  let lastTick = performance.now()
  /** The longest time between two ticks since the last stall was reported. */
  let longestMs = 0
  const timer = setInterval(() => {
    const now = performance.now()
    longestMs = Math.max(longestMs, now - lastTick)
    lastTick = now
    Atomics.add(ticks, 0, 1)
  }, TICK_MS).unref()
  thread.on('error', (error) => {
    clearInterval(timer)
    unavailable(error)
  })
  thread.on('message', ({ attempt, location }: StallOver) => {
    const { task, id, fencingToken, attempt: number } = attempt ?? {}
    const stalledMs = Math.round(longestMs)
    longestMs = 0
    sink({ event: 'event_loop.stalled', task, id, fencingToken, attempt: number, location, stalledMs })
  })
  Object.defineProperty(globalThis, Symbol.for(hook), { value: () => currentAttempt(context), configurable: true })

  const send = (message: ToMonitor): void => thread.postMessage(message)
  return {
    setLogLevel: (level) => send({ logLevel: level }),
    async close() {
      // Keep the process alive until the thread has ended, because nothing else may do so.
      thread.ref()
      send('stop')
      clearInterval(timer)
      Reflect.deleteProperty(globalThis, Symbol.for(hook))
      await settlesWithin(exited, END_MS)
      await thread.terminate()
    },
  }
}

/** Returns the running attempt as JSON. The monitor thread calls this function while the main thread is paused. */
function currentAttempt(context: AsyncContext): string | undefined {
  const running = context.current()
  if (running === undefined) return undefined
  const { name, id, fencingToken, attempt } = running
  return JSON.stringify({ task: name, id, fencingToken, attempt } satisfies AttemptInLoop)
}
