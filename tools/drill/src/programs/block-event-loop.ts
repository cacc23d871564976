// Blocks the event loop of its thread without using the processor.

const SLICE_MS = 5

export function blockEventLoop(ms: number): void {
  const nothing = new Int32Array(new SharedArrayBuffer(Int32Array.BYTES_PER_ELEMENT))
  const until = performance.now() + ms
  while (performance.now() < until) Atomics.wait(nothing, 0, 0, SLICE_MS)
}
