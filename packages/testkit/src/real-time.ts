// Provides real time. The globals are read when this file is loaded because a test may replace them with fake timers later.

const { setTimeout } = globalThis
const now = performance.now.bind(performance)

export const realTime = {
  /** Milliseconds since an arbitrary fixed time. */
  now,
  wait: (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms)),
}
