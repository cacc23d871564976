// Works around a race in V8's cache of WebAssembly wrappers, in which the end of one thread crashes the whole process.
import { setFlagsFromString } from 'node:v8'

/** The largest value of the flag: more calls than any instance makes. */
const NEVER = 2 ** 30 - 1

let kept = false

/**
 * After 1,000 calls from WebAssembly to one JavaScript function, V8 compiles a wrapper for functions of that signature and puts
 * it into a cache that all threads share. In V8 13.6, a thread may get a wrapper that another, ending thread is about to free:
 * SIGSEGV. Node itself runs WebAssembly in every thread, to strip types and in `fetch`. With this budget V8 never compiles such a
 * wrapper and keeps using the generic one. Modules instantiated earlier keep their own budget.
 */
export function keepWrappersGeneric(): void {
  if (kept) return
  kept = true
  setFlagsFromString(`--wasm-wrapper-tiering-budget=${NEVER}`)
}
