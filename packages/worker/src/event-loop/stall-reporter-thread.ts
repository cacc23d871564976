// Runs in the monitor thread: reads the main thread's ticks and logs what is blocking the main thread's event loop.
//
// While the event loop is blocked, nothing runs on the main thread, including its log. This thread therefore writes its log lines
// itself. It sends a message when the stall is over, and the main thread then emits the event that is counted.
import { writeSync } from 'node:fs'
import { parentPort, workerData } from 'node:worker_threads'
import { settlesWithin } from '@bullpen/engine/node'
import type { LogField } from '@bullpen/telemetry'
import { createLog } from '@bullpen/telemetry/log'
import { type StackSample, sampleMainThread } from './main-thread-inspector.ts'
import type { MonitorOptions, StallOver, ToMonitor } from './messages.ts'
import { NO_STALL, observe, type StallState, TICK_MS } from './stall-detector.ts'

/** How long a line waits for a stack sample, in ms. A sample usually takes a few milliseconds, but native code delays it. */
const SAMPLE_MS = 1_000

const { ticks, warnAfterMs, hook, log: about } = workerData as MonitorOptions
const counter = new Int32Array(ticks)
const tick = (): number => Atomics.load(counter, 0)
// Lines are written synchronously. The main thread's streams are blocked, and the thread pool may be busy.
const log = createLog({ ...about, destination: { write: writeNow } })

let state: StallState = { ...NO_STALL, tick: tick() }
let readAt = performance.now()
let canSample = true
/** The sample that is being taken. Only one is taken at a time. */
let sampling: { readonly done: Promise<void>; readonly cancel: AbortController } | undefined
/**
 * The stall that is going on, or that comes next. A stall that is over keeps its object until its event is sent, so that the
 * samples of two stalls are never mixed.
 */
let stall: { sample: StackSample | undefined } = { sample: undefined }

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
  const current = stall
  sampling ??= startSample(newest)
  if (sampling !== undefined) await settlesWithin(sampling.done, SAMPLE_MS)
  // The stall ended before it could be reported, so only the event for its end is emitted.
  if (tick() !== newest) return
  const { sample } = current
  const fields: Partial<Record<LogField, unknown>> = {
    ...sample?.attempt,
    location: sample?.location,
    stalledMs: Math.round(state.stalledMs),
  }
  log[reports === 1 ? 'warn' : 'error'](
    fields,
    `event loop blocked${culprit(sample)}: no timers and no other tasks can run`,
  )
}

function culprit(sample: StackSample | undefined): string {
  if (sample === undefined) return canSample ? ' in native code, or by a debugger' : ''
  return sample.attempt === undefined ? ' by code outside any task' : ''
}

function startSample(newest: number): typeof sampling {
  if (!canSample) return undefined
  const cancel = new AbortController()
  const sampled = stall
  const done = sampleMainThread(hook, cancel.signal, tick)
    .then((found) => {
      // Once the main thread has ticked again, what it is doing is no longer part of this stall.
      if (found === undefined || found.tick !== newest) return
      // The last moments of a stall are often ours: a handler that has returned leaves its attempt to be ended. A sample of them
      // names no task, and must not replace the sample that did.
      if (found.attempt !== undefined || sampled.sample?.attempt === undefined) sampled.sample = found
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
  const ended = stall
  stall = { sample: undefined }
  // If a sample was waiting for native code to return, it is about to be taken.
  const last = sampling
  if (last !== undefined) await settlesWithin(last.done, SAMPLE_MS)
  last?.cancel.abort()
  const over: StallOver = { attempt: ended.sample?.attempt, location: ended.sample?.location }
  parentPort?.postMessage(over)
}

parentPort?.on('message', (message: ToMonitor) => {
  if (message !== 'stop') {
    log.level = message.logLevel
    return
  }
  clearInterval(timer)
  sampling?.cancel.abort()
  parentPort?.close()
})

/** Writes a line. If the pipe stays full for 100 ms, drops the line, because this thread must not block. */
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
