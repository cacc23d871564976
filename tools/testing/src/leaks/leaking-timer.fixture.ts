// A test file that passes and leaves a timer behind.
import { it } from 'vitest'

it('leaks', () => {
  setInterval(() => {}, 60_000)
})
