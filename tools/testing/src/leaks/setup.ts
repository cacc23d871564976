// Loaded by vitest before every test file: the file fails if anything that its tests opened is still open after its last hook.
import { beforeAll } from 'vitest'
import { watchForLeaks } from './leak-detector.ts'

/** Longer than any socket or thread takes to close; a file without a leak waits only as long as it must. */
const CLOSED_WITHIN_MS = 5_000

const detector = watchForLeaks()

// A cleanup that beforeAll returns runs after every afterAll, and beside the other cleanups.
beforeAll(() => () => detector.expectNone(CLOSED_WITHIN_MS))
