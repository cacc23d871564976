// What the engine asks of the world, as Node gives it: a door of its own, so that the engine itself stays without.
export { attemptContext } from './attempt-context.ts'
export { sha256 } from './sha256.ts'
export { clockOf, systemClock } from './system-clock.ts'
export { keepWrappersGeneric } from './wasm-wrappers.ts'
