// Makes a small run try the same random cases each time, so that a test that fails there was broken by a change. A full run tries
// new cases each time, and prints the seed of the one that fails. Vitest evaluates this module before every test file.
import fc from 'fast-check'
import { inject } from 'vitest'

fc.configureGlobal({ ...fc.readConfigureGlobal(), ...(inject('scale') === 'small' && { seed: 1 }) })
