// For Bullpen's own packages. These exports may change in any version.

export { type ProcessFitOptions, processFit } from './fits-process.ts'
export type { IsolateResourceOpener } from './inside/resources.ts'
export type { Replaced } from './isolate/isolate-pool.ts'
export { type IsolatorOptions, openIsolator, type PreparingIsolator } from './open-isolator.ts'
