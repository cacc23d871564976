// Real time, for what a fake clock can't move: taken when this is loaded, since a test may put fake timers into its place.

const { setTimeout } = globalThis
const now = performance.now.bind(performance)

export const realTime = {
  /** Milliseconds since any fixed moment. */
  now,
  wait: (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms)),
}
