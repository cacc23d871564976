// The sandbox's public surface.
export type { IsolateResourceOpener } from './inside/resources.ts'
export type { Replaced } from './isolate/isolate-pool.ts'
export { type IsolatorOptions, openIsolator } from './open-isolator.ts'
