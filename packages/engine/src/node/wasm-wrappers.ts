// Keeps V8 from a race in its cache of WebAssembly wrappers, in which one thread's end brings the whole process down.
import { setFlagsFromString } from 'node:v8'

/** The most that V8's flag can hold, and more calls than any instance makes. */
const NEVER = 2 ** 30 - 1

let kept = false

/**
 * After 1,000 calls from WebAssembly to one JavaScript function V8 compiles a wrapper for functions of its signature, and
 * keeps it in a cache that all threads share. In V8 13.6 a thread may be given a wrapper that another one, which is
 * ending, is about to free: SIGSEGV. Node itself runs WebAssembly in any thread, to strip types and in `fetch`. With this
 * budget no such wrapper is made, and the generic one stays in use; what was instantiated before keeps its own budget.
 */
export function keepWrappersGeneric(): void {
  if (kept) return
  kept = true
  setFlagsFromString(`--wasm-wrapper-tiering-budget=${NEVER}`)
}
