// Real time, taken when this file is loaded: a test may replace the globals with fake timers later.

const { setTimeout } = globalThis
const now = performance.now.bind(performance)

export const realTime = {
  /** Milliseconds since an arbitrary fixed time. */
  now,
  wait: (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms)),
}
