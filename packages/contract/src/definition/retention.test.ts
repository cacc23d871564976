import { expect, test } from 'vitest'
import { z } from 'zod'
import { defineCatalogue } from './catalogue.ts'
import { defineQueue } from './queue.ts'
import { defineTask } from './task-definition.ts'

const DAY_MS = 86_400_000

test('a queue has the limits of its definition, and no others', () => {
  const { retention } = defineQueue({
    name: 'mail',
    retention: { completed: { age: '2d' }, dead: { age: 'none', count: 5 }, expired: {} },
  })
  expect(retention).toEqual({
    completed: { ageMs: 2 * DAY_MS, count: undefined },
    dead: { ageMs: 'none', count: 5 },
    expired: { ageMs: undefined, count: undefined },
  })
  expect(defineQueue({ name: 'mail' }).retention).toEqual({})
})

test('the definitions of a queue share one retention, which the catalogue returns', () => {
  const mail = defineQueue({ name: 'mail', retention: { dead: { count: 5 } } })
  const same = defineQueue({ name: 'mail', retention: { dead: { count: 6 } } })
  const ofQueue = (name: `${string}.${string}`, queue: string | typeof mail) =>
    defineTask({ name, queue, input: z.object({}), output: z.object({}) })
  const catalogue = defineCatalogue(ofQueue('mail.send', mail), ofQueue('mail.drop', mail), ofQueue('cpu.run', 'cpu'))
  expect(['mail', 'cpu', 'unknown'].map((name) => catalogue.queue(name).retention)).toEqual([mail.retention, {}, {}])
  for (const other of [same, 'mail']) {
    expect(() => defineCatalogue(ofQueue('mail.send', mail), ofQueue('mail.drop', other))).toThrow(
      expect.objectContaining({
        code: 'invalid_definition',
        message: expect.stringContaining("retention of queue 'mail'"),
      }),
    )
  }
})

test.each([
  [{ ded: {} }, 'retention.ded is not a setting; expected completed, dead, cancelled, expired; did you mean dead?'],
  [{ dead: { max: 5 } }, 'retention.dead.max is not a setting; expected age, count'],
  [{ dead: 5 }, 'retention.dead is 5; expected an object'],
  [7, 'retention is 7; expected an object'],
  [{ dead: { count: 0 } }, "retention.dead.count is 0; expected a whole number of at least 1, or 'none'"],
  [{ dead: { count: '5' } }, 'retention.dead.count is "5"'],
])('the retention %j is rejected', (retention, message) => {
  // Plain JavaScript may pass what the types refuse.
  expect(() => defineQueue({ name: 'mail', retention: retention as never })).toThrow(
    expect.objectContaining({ code: 'invalid_definition', message: expect.stringContaining(message) }),
  )
})

test('an age without a unit is rejected, and the error names the setting', () => {
  const options = { name: 'mail', retention: { dead: { age: 30 as never } } }
  expect(() => defineQueue(options)).toThrow(
    expect.objectContaining({ code: 'invalid_duration', message: expect.stringContaining('retention.dead.age is 30') }),
  )
})
