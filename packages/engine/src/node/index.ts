// Exports the parts of the engine that need Node. They have their own entry point because the engine itself does not import
// anything from Node.
export { attemptContext } from './async-context.ts'
export { type IdempotentCall, idempotencyOf, requestDigest } from './idempotency.ts'
export { createRandomPool } from './random-pool.ts'
export { sha256 } from './sha256.ts'
export { clockOf, systemClock } from './system-clock.ts'
export { keepWrappersGeneric } from './wasm-wrappers.ts'
export { settlesWithin, withTimeout } from './with-timeout.ts'
