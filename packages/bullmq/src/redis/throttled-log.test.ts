import { expect, it } from 'vitest'
import { throttledLog } from './throttled-log.ts'

it('a throttled log writes once a second, with the number of suppressed events', () => {
  let now = 0
  const lines: { readonly event: string; readonly suppressed: number }[] = []
  const log = throttledLog(
    (event: string, suppressed) => lines.push({ event, suppressed }),
    () => now,
  )
  for (now = 0; now < 2_500; now += 100) log(`at ${now}`)
  expect(lines).toEqual([
    { event: 'at 0', suppressed: 0 },
    { event: 'at 1000', suppressed: 9 },
    { event: 'at 2000', suppressed: 9 },
  ])
})
