/**
 * Finds what a test leaves behind: timers, sockets, servers, worker threads, child processes, file watchers, listeners on
 * `process`, and changed environment variables and globals. Everything that is created after `watchForLeaks()` must be gone,
 * and everything that is changed must be restored, after the test has cleaned up. Because closing takes a moment (a socket's
 * last packet, a thread's exit), the check waits before it fails. Resources that the test runner itself opens are recognised by
 * where they were created, and are ignored.
 */
import { realTime } from '@bullpen/testkit/internal'
import { trackGlobalState } from './global-state.ts'
import { trackResources } from './open-resources.ts'
import { trackListeners } from './process-listeners.ts'

export interface LeakDetector {
  /** Returns a description of each resource that is open, and of each global that is changed. */
  leaks(): readonly string[]
  /** Waits until everything is closed and restored. @throws Error that names what is left after `withinMs`. */
  expectNone(withinMs: number): Promise<void>
  stop(): void
}

const LOOK_EVERY_MS = 20
/** This is read when the file is loaded because a test may leave fake timers in its place. */
const { setImmediate } = globalThis

export function watchForLeaks(): LeakDetector {
  const resources = trackResources()
  const listeners = trackListeners()
  const globals = trackGlobalState()
  const leaks = (): readonly string[] => [...resources.list(), ...listeners.list(), ...globals.list()]
  return {
    leaks,
    async expectNone(withinMs) {
      const deadline = realTime.now() + withinMs
      for (;;) {
        await closed()
        const left = leaks()
        if (left.length === 0) return
        if (realTime.now() > deadline) throw new Error(leakMessage(left, withinMs))
        await realTime.wait(LOOK_EVERY_MS)
      }
    },
    stop() {
      resources.stop()
      listeners.stop()
    },
  }
}

/**
 * Waits for a few turns of the event loop, because Node reports a closed handle one turn later, and one of the timers is our own.
 */
async function closed(): Promise<void> {
  for (let turn = 0; turn < 3; turn++) await new Promise<void>((resolve) => setImmediate(resolve))
}

function leakMessage(leaks: readonly string[], withinMs: number): string {
  const counts = new Map<string, number>()
  for (const leak of leaks) counts.set(leak, (counts.get(leak) ?? 0) + 1)
  const lines = [...counts].map(([leak, count]) => `  ${count} × ${leak}`)
  return [
    `the tests of this file left ${leaks.length} resources open or changed, ${withinMs} ms after the last one:`,
    ...lines,
    'close or restore them in the test (onTestFinished, afterAll), or in the code that opened or changed them',
  ].join('\n')
}
