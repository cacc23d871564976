// Refreshes the screen of bullpen top until the user leaves.
import { setTimeout as sleep } from 'node:timers/promises'
import { ProblemError } from '@bullpen/client'
import { errorReport } from '../../output/error-report.ts'
import type { Screen } from '../../output/screen.ts'
import { frameLines } from '../../output/top/frame.ts'
import { isTemporary } from '../../temporary-error.ts'
import type { Snapshot } from './snapshot.ts'

interface LiveOptions {
  readonly read: (signal: AbortSignal) => Promise<Snapshot>
  readonly intervalMs: number
}

/** How often the age of old data is drawn, in ms. */
const AGE_MS = 1_000
/** How much later than expected a response may be before the data is marked as old, in ms. */
const LATE_MS = 5_000

/** Resolves when the user leaves. @throws errors that are not temporary, such as a wrong API key. */
export async function showLive(screen: Screen, { read, intervalMs }: LiveOptions): Promise<void> {
  const { left } = screen
  let snapshot: Snapshot | undefined
  let readAt = performance.now()
  let failure: string | undefined

  const draw = (): void => {
    const ageMs = performance.now() - readAt
    const late = ageMs > intervalMs + LATE_MS ? 'the API has not responded since' : undefined
    screen.draw(frameLines({ snapshot, ageMs, failure: failure ?? late }, { ...screen.size(), paint: screen.paint }))
  }
  const aging = setInterval(draw, AGE_MS)
  screen.onResize(draw)
  draw()
  try {
    while (!left.aborted) {
      const startedAt = performance.now()
      try {
        snapshot = await read(left)
        readAt = performance.now()
        failure = undefined
      } catch (error) {
        if (left.aborted) return
        failure = failureText(error)
      }
      draw()
      await sleepUntilLeft(startedAt + intervalMs - performance.now(), left)
    }
  } finally {
    clearInterval(aging)
  }
}

function failureText(error: unknown): string {
  if (!(error instanceof ProblemError && isTemporary(error))) throw error
  return errorReport(error)?.lines[0] ?? error.code
}

async function sleepUntilLeft(ms: number, left: AbortSignal): Promise<void> {
  await sleep(Math.max(0, ms), undefined, { signal: left }).catch(() => {})
}
