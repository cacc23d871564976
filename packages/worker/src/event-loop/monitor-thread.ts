// The monitor thread: reads the main thread's ticks, and writes to the log who blocks its event loop.
//
// While the event loop is blocked nothing on the main thread runs, its log included. So this thread writes its lines itself,
// and sends a message when the stall is over; the main thread then emits the event that is counted.
import { writeSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import { settlesWithin } from '@bullpen/engine/node'
import type { LogField } from '@bullpen/telemetry'
import { createLog } from '@bullpen/telemetry/log'
import { type StackSample, sampleMainThread } from './main-thread-inspector.ts'
import type { MonitorOptions, StallOver } from './messages.ts'
import { NO_STALL, observe, type StallState, TICK_MS } from './stall.ts'

/** How long a line waits for a stack sample, in ms: there is none while native code runs. Usual are a few milliseconds. */
const SAMPLE_MS = 1_000

const { ticks, warnAfterMs, hook, log: about } = workerData as MonitorOptions
const counter = new Int32Array(ticks)
const tick = (): number => Atomics.load(counter, 0)
// Not through the main thread, whose streams are blocked, and not through the thread pool, which may be busy.
const log = createLog({ ...about, destination: { write: writeNow } })

let state: StallState = { ...NO_STALL, tick: tick() }
let readAt = performance.now()
let canSample = true
/** The sample that is under way; there is one at a time. */
let sampling: { readonly done: Promise<void>; readonly cancel: AbortController } | undefined
/** The newest sample of this stall. */
let sample: StackSample | undefined

const timer = setInterval(() => {
  const now = performance.now()
  const step = observe(state, { tick: tick(), elapsedMs: now - readAt }, warnAfterMs)
  state = step.state
  readAt = now
  if (step.finding === 'report') void report()
  if (step.finding === 'over') void reportOver()
}, TICK_MS)

async function report(): Promise<void> {
  const { tick: newest, reports } = state
  sampling ??= startSample(newest)
  if (sampling !== undefined) await settlesWithin(sampling.done, SAMPLE_MS)
  // Over before it could be reported: the line about its end says everything.
  if (tick() !== newest) return
  const fields: Partial<Record<LogField, unknown>> = {
    ...sample?.attempt,
    location: sample?.location,
    stalledMs: Math.round(state.stalledMs),
  }
  log[reports === 1 ? 'warn' : 'error'](fields, `event loop blocked${culprit()}: no timer and no other task runs`)
}

function culprit(): string {
  if (sample === undefined) return canSample ? ' in native code, or by a debugger' : ''
  return sample.attempt === undefined ? ' by code outside any task' : ''
}

function startSample(newest: number): typeof sampling {
  if (!canSample) return undefined
  const cancel = new AbortController()
  const done = sampleMainThread(hook, cancel.signal, tick)
    .then((found) => {
      // What the main thread did after its next tick is not part of the stall.
      if (found !== undefined && found.tick === newest) sample = found
    })
    .catch((err: unknown) => {
      canSample = false
      log.warn({ err }, 'cannot sample the main thread; stalls will be reported without a stack')
    })
    .finally(() => {
      sampling = undefined
    })
  return { done, cancel }
}

async function reportOver(): Promise<void> {
  // A sample that waited for native code to return is about to be taken.
  if (sampling !== undefined) await settlesWithin(sampling.done, SAMPLE_MS)
  sampling?.cancel.abort()
  const over: StallOver = { attempt: sample?.attempt, location: sample?.location }
  sample = undefined
  parentPort?.postMessage(over)
}

// The only message: stop.
parentPort?.once('message', () => {
  clearInterval(timer)
  sampling?.cancel.abort()
})

/** A full pipe that takes no line for 100 ms loses it: this thread must not block. */
function writeNow(line: string): void {
  for (let attempts = 0; attempts < 10; attempts++) {
    try {
      writeSync(1, line)
      return
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EAGAIN') return
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10)
    }
  }
}
