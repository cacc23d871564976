// Works around a race in V8's cache of WebAssembly wrappers that can crash the whole process when a thread ends.
import { setFlagsFromString } from 'node:v8'

/** The flag's largest value, which is more calls than any instance makes. */
const NEVER = 2 ** 30 - 1

let kept = false

/**
 * Makes V8 use its generic wrapper for all calls from WebAssembly to JavaScript.
 *
 * After 1,000 calls from WebAssembly to one JavaScript function, V8 compiles a wrapper for functions of that signature and puts
 * it into a cache that all threads share. In V8 13.6, a thread may get a wrapper that another thread, which is ending, is about
 * to free. The process then crashes with SIGSEGV. Node itself runs WebAssembly in every thread, to strip types and in `fetch`.
 * With the budget set here, V8 never compiles such a wrapper and uses the generic one instead. Modules that were instantiated
 * earlier keep their own budget.
 */
export function keepWrappersGeneric(): void {
  if (kept) return
  kept = true
  setFlagsFromString(`--wasm-wrapper-tiering-budget=${NEVER}`)
}
