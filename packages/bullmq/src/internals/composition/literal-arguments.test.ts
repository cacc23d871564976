// Tests that BullMQ's scripts pass known numbers to Redis as strings, and are otherwise unchanged.
import { expect, it } from 'vitest'
import { bullmqScripts } from './composed-scripts.ts'
import { DELAY_AND_PRIORITY, withLiteralStrings } from './literal-arguments.ts'

it('a number in the text of a call becomes a string, and anything else stays as it is', () => {
  const lua = `rcall("LREM", key, -1, id)
rcall('ZRANGE', key, 0, max - 1)
rcall("ZADD", math.max(1, 2), 0, "0")
local n = 0
other(1, 0)`
  expect(withLiteralStrings(lua)).toBe(`rcall("LREM", key, "-1", id)
rcall('ZRANGE', key, "0", max - 1)
rcall("ZADD", math.max(1, 2), 0, "0")
local n = 0
other(1, 0)`)
})

it.each(['addStandardJob', 'addDelayedJob', 'addPrioritizedJob', 'addParentJob'])(
  '%s stores the delay and the priority of a job in one place',
  (name) => {
    const { content } = bullmqScripts().find((script) => script.name === name) ?? { content: '' }
    expect(content.split(DELAY_AND_PRIORITY)).toHaveLength(2)
    expect(withLiteralStrings(content)).not.toContain(DELAY_AND_PRIORITY)
  },
)

it('without the quotes around numbers, the text is BullMQ’s', () => {
  const changed = bullmqScripts().filter(({ content }) => withLiteralStrings(content) !== content)
  expect(changed.length).toBeGreaterThan(10)
  for (const { content } of changed) {
    const text = content.replace(DELAY_AND_PRIORITY, '')
    expect(withoutQuotes(withLiteralStrings(text))).toBe(withoutQuotes(text))
  }
})

const withoutQuotes = (lua: string): string => lua.replace(/"(-?\d+)"/g, '$1')
