// What the engine takes from Node, behind an entry point of its own: the engine itself imports nothing from Node.
export { attemptContext } from './attempt-context.ts'
export { sha256 } from './sha256.ts'
export { clockOf, systemClock } from './system-clock.ts'
export { keepWrappersGeneric } from './wasm-wrappers.ts'
export { settlesWithin, withTimeout } from './with-timeout.ts'
