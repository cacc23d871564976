// Waits for a run to end, and shows its progress.
import type { Client, RunHandle } from '@bullpen/client'
import type { RunView } from '@bullpen/contract'
import { EXIT, type ExitCode } from '../../exit-codes.ts'
import type { Output } from '../../output/output.ts'
import { progressText } from '../../output/tasks/run-progress.ts'
import { runLines } from '../../output/tasks/run-text.ts'
import { endedOrCurrent } from '../wait-for-task.ts'

interface WaitForRun {
  /** How long to wait, in ms. Undefined if there is no limit. */
  readonly timeoutMs: number | undefined
  readonly expected: 'completed' | 'any result'
}

/** How often the progress is read, in ms, and how often it is printed if standard error is not a terminal. */
const READ_EVERY_MS = 1_000
const PRINT_EVERY_MS = 10_000
/** The results per second are those of this time, in ms. */
const RATE_OVER_MS = 10_000

/** Prints the run once it has ended or the time is up. The exit code shows whether the run has ended as expected. */
export async function waitForRun(
  out: Output,
  client: Client,
  id: string,
  { timeoutMs, expected }: WaitForRun,
): Promise<ExitCode> {
  const run = client.run(id)
  const done = new AbortController()
  const showing = showProgress(out, client, run, done.signal)
  let found: RunView
  let hasPrinted = false
  try {
    const options = timeoutMs === undefined ? {} : ({ timeout: `${timeoutMs}ms` } as const)
    found = await endedOrCurrent(() => run.waitUntilEnded(options), run.describe)
  } finally {
    done.abort()
    hasPrinted = await showing
    out.progress()
  }
  // The last of several lines does not say that the run is running.
  if (hasPrinted && found.state === 'ended') out.remark(progressText(found, undefined, undefined))
  await out.answer(found, (layout) => runLines(found, layout))
  if (found.state !== 'ended') return EXIT.incomplete
  return expected === 'any result' || found.result === expected ? EXIT.success : EXIT.incomplete
}

/**
 * Shows the progress until the signal aborts. Resolves with whether lines were printed that stay. Never rejects, because the wait reports
 * what goes wrong.
 */
async function showProgress(out: Output, client: Client, run: RunHandle, signal: AbortSignal): Promise<boolean> {
  if (out.json) return false
  const samples: { readonly at: number; readonly results: number }[] = []
  let printedAt = Number.NEGATIVE_INFINITY
  let printed = ''
  while (!signal.aborted) {
    const now = performance.now()
    const found = await run.describe({ signal }).catch(() => undefined)
    if (found !== undefined && !signal.aborted) {
      samples.push({ at: now, results: found.results })
      while (samples.length > 2 && now - (samples[0]?.at ?? 0) > RATE_OVER_MS) samples.shift()
      const workers = await workersOf(client, found, signal)
      const text = progressText(found, rateOf(samples), workers)
      if (signal.aborted) break
      if (out.isLive) out.progress(text)
      else if (now - printedAt >= PRINT_EVERY_MS && text !== printed) {
        out.remark(text)
        printedAt = now
        printed = text
      }
    }
    await pause(READ_EVERY_MS, signal)
  }
  return printed !== ''
}

/** Returns the results per second, or undefined if there is only one sample. */
function rateOf(samples: readonly { readonly at: number; readonly results: number }[]): number | undefined {
  const [first, last] = [samples[0], samples.at(-1)]
  if (first === undefined || last === undefined || last.at === first.at) return undefined
  return ((last.results - first.results) * 1_000) / (last.at - first.at)
}

/** Returns how many workers run a queue of the run, or undefined if the fleet cannot be read. */
async function workersOf(client: Client, run: RunView, signal: AbortSignal): Promise<number | undefined> {
  const fleet = await client.fleet({ signal }).catch(() => undefined)
  const queues = new Set([run.source.queue, ...run.stages.map(({ queue }) => queue), run.reduction?.queue])
  return fleet?.workers.filter(({ alive, pools }) => alive && pools.some(({ queue }) => queues.has(queue))).length
}

/** Resolves after this time or when the signal aborts. */
async function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, ms)
  signal.addEventListener('abort', () => resolve(), { once: true })
  await promise
  clearTimeout(timer)
}
