// Makes a test file fail if anything that its tests opened is still open after its last hook. Vitest loads this module before
// every test file.
import { beforeAll } from 'vitest'
import { watchForLeaks } from './leak-detector.ts'

/**
 * How long resources may take to close, in ms. This is longer than any socket or thread takes, and a file without a leak waits
 * only as long as necessary.
 */
const CLOSED_WITHIN_MS = 5_000

const detector = watchForLeaks()

// A cleanup that beforeAll returns runs after every afterAll, concurrently with the other cleanups.
beforeAll(() => () => detector.expectNone(CLOSED_WITHIN_MS))
