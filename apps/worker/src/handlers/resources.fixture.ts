// The resources for tests of handlers that use some of them.
import type { WorkerResources } from '../resources/index.ts'

/** The name of the worker in these tests. */
export const WORKER = 'host:1'

const unused = () => Promise.reject(new Error('the test has no such resource'))

/** Returns the given resources, and others whose methods reject. */
export function resourcesWith(given: Partial<WorkerResources>): WorkerResources {
  return {
    files: {
      digest: unused,
      walk: () => ({ [Symbol.asyncIterator]: () => ({ next: unused }) }),
    },
    receipts: { deliver: unused },
    worker: { name: WORKER },
    ...given,
  }
}
