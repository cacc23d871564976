// What the watching thread runs: looks at the main thread's beats, and says in the log who blocks its event loop.
import { writeSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'
import type { LogField } from '@bullpen/telemetry'
import { createLog } from '@bullpen/telemetry/log'
import { lookAtMainThread, type Sighting } from './main-thread-inspector.ts'
import type { BlockOver, WatchOrders } from './messages.ts'
import { BEAT_MS, observe, STILLNESS_BEGINS } from './stall.ts'

/** A line does not wait longer for its task and location: native code shows none while it runs. Some milliseconds are usual. */
const SIGHT_MS = 1_000

const { beats, warnAfterMs, hook, log: about } = workerData as WatchOrders
const beating = new Int32Array(beats)
const beat = (): number => Atomics.load(beating, 0)
// Past the main thread, whose streams do not move while it is blocked, and past the thread pool, which may be busy.
const log = createLog({ ...about, destination: { write: writeOut } })

let stillness = { ...STILLNESS_BEGINS, beat: beat() }
let lookedAt = performance.now()
let canLook = true
/** The look at this block that has not come to an end; there is one at a time. */
let looking: { readonly sight: Promise<void>; readonly stop: AbortController } | undefined
/** Who was last seen in this block. */
let seen: Sighting | undefined

const watch = setInterval(() => {
  const now = performance.now()
  const step = observe(stillness, { beat: beat(), elapsedMs: now - lookedAt }, warnAfterMs)
  stillness = step.stillness
  lookedAt = now
  if (step.finding === 'tell') void tell()
  if (step.finding === 'over') void tellEnd()
}, BEAT_MS)

async function tell(): Promise<void> {
  const { beat: newest, told } = stillness
  looking ??= startLook(newest)
  await Promise.race([looking?.sight, sleep(SIGHT_MS, undefined, { ref: false })])
  // Over before it could be told: the line of its end says all.
  if (beat() !== newest) return
  const fields: Partial<Record<LogField, unknown>> = {
    ...seen?.attempt,
    location: seen?.location,
    stalledMs: Math.round(stillness.stillMs),
  }
  log[told === 1 ? 'warn' : 'error'](fields, `the event loop is blocked${blocker()}: no timer and no other task runs`)
}

function blocker(): string {
  if (seen === undefined) return canLook ? ' in native code, or by a debugger' : ''
  return seen.attempt === undefined ? ' by code that belongs to no task' : ''
}

function startLook(newest: number): typeof looking {
  if (!canLook) return undefined
  const stop = new AbortController()
  const sight = lookAtMainThread(hook, stop.signal, beat)
    .then((sighting) => {
      // What it did after its next beat has nothing to do with the block.
      if (sighting !== undefined && sighting.beat === newest) seen = sighting
    })
    .catch((err: unknown) => {
      canLook = false
      log.warn({ err }, 'who blocks the event loop can not be seen: Node can not look at its main thread')
    })
    .finally(() => {
      looking = undefined
    })
  return { sight, stop }
}

async function tellEnd(): Promise<void> {
  // One that waited for native code to end is about to see it.
  if (looking !== undefined) await Promise.race([looking.sight, sleep(SIGHT_MS, undefined, { ref: false })])
  looking?.stop.abort()
  const over: BlockOver = { attempt: seen?.attempt, location: seen?.location }
  seen = undefined
  parentPort?.postMessage(over)
}

// The only message: come to an end.
parentPort?.once('message', () => {
  clearInterval(watch)
  looking?.stop.abort()
})

/** A line that a full pipe does not take in a tenth of a second is lost, as this thread must not block for ever. */
function writeOut(line: string): void {
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
