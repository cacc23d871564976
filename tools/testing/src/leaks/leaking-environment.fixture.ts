// A test file that passes and leaves an environment variable behind.
import { it } from 'vitest'

it('leaks', () => {
  process.env['BULLPEN_TEST_LEAK'] = 'left behind'
})
