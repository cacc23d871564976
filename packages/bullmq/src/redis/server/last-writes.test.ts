import { expect, it } from 'vitest'
import { failedWrites } from './last-writes.ts'

it('a write that failed the last time is told apart from one that succeeded, and from one about which INFO says nothing', () => {
  const info = 'loading:0\r\nrdb_last_bgsave_status:err\r\naof_last_bgrewrite_status:ok\r\n'
  expect(failedWrites(info)).toEqual(
    new Map([
      ['rewrite', false],
      ['snapshot', true],
    ]),
  )
  expect(failedWrites('aof_last_write_status:err\r\n').get('aof')).toBe(true)
  expect(failedWrites('')).toEqual(new Map())
})
