// Pins the flag of V8 that the API sets, because V8 ignores flags that it does not know.
import { spawnSync } from 'node:child_process'
import { expect, test } from 'vitest'
import { NO_PRETENURING } from './avoid-pretenuring.ts'

const exitOf = (flag: string) => spawnSync(process.execPath, [flag, '-e', '0']).status

test('V8 knows the flag', () => {
  expect(exitOf(NO_PRETENURING)).toBe(0)
  expect(exitOf(`${NO_PRETENURING}-x`)).not.toBe(0)
})
