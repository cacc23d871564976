// Makes a task run in the caller's own thread.
import type { TaskDefinition } from '@bullpen/contract'

/** Returns the definition without its isolation, for a process that has no isolates. */
export function inlined<D extends TaskDefinition>(definition: D): D {
  return { ...definition, isolation: 'inline', memoryLimitBytes: undefined }
}
