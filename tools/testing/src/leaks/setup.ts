// Makes a test file fail if anything that its tests opened is still open, or anything global that they changed is still changed,
// after its last hook. Vitest evaluates this module before every test file, also if the files share a process.
import { beforeAll, inject } from 'vitest'
import { watchForLeaks } from './leak-detector.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** How long what a test file has opened may take to close, in ms. A file without a leak waits only as long as necessary. */
    closedWithinMs: number
  }
}

const detector = watchForLeaks()

// A cleanup that beforeAll returns runs after every afterAll, concurrently with the other cleanups.
beforeAll(() => () => detector.expectNone(inject('closedWithinMs')).finally(detector.stop))
