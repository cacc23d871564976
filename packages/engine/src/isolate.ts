// For the sandbox's code inside threads and child processes, each of which would otherwise load the whole engine when it starts.
// These exports may change in any version.

export { Steps } from './attempt/steps.ts'
export type { Outcome } from './ports/attempt-result.ts'
export type { IsolatedTask } from './ports/isolator.ts'
export type { RegisteredKind, StepLookup, StepStore } from './ports/steps.ts'
export { type OpenResources, openResources, type ResourceOpener } from './resources.ts'
export { declaredFailure, outcomeOfThrow, Snooze } from './verdict/outcome.ts'
