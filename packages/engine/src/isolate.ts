// For the sandbox's code inside threads and child processes, each of which would otherwise load the whole engine when it starts.
// These exports may change in any version.

export { parseOutput } from './attempt/output.ts'
export { fromPortable, type PortableError, toPortable } from './attempt/portable-error.ts'
export { type PortableFields, packFields, unpackFields } from './attempt/portable-fields.ts'
export { progressOf } from './attempt/progress.ts'
export { Steps } from './attempt/steps.ts'
export type { Outcome } from './ports/attempt-result.ts'
export type { IsolatedTask } from './ports/isolator.ts'
export type { RegisteredKind, StepLookup, StepStore } from './ports/steps.ts'
export { type OpenResources, openResources, type ResourceOpener } from './resources.ts'
export { decodeCall, encodeCall } from './task/payload/json-text.ts'
export { declaredFailure, outcomeOfError, Snooze } from './verdict/outcome.ts'
export { errorOf, messageOf } from './verdict/thrown.ts'
