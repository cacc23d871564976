// Tests which limits a queue's definition accepts, and that a catalogue has one set of limits per queue.
import { expect, test } from 'vitest'
import { z } from 'zod'
import { defineCatalogue } from '../catalogue.ts'
import { defineQueue } from '../queue.ts'
import { defineTask } from '../task-definition.ts'

const task = (name: `${string}.${string}`, queue: string | ReturnType<typeof defineQueue>) =>
  defineTask({ name, queue, input: z.object({}) })

test('a queue has the limits of its definition', () => {
  const { limits } = defineQueue({ name: 'mail', limits: { maxTasks: 1_000, maxBytes: '64MiB', maxAge: '5m' } })
  expect(limits).toEqual({ maxTasks: 1_000, maxBytes: 67_108_864, maxAgeMs: 300_000 })
  expect(defineQueue({ name: 'mail', limits: { maxBytes: 5_000 } }).limits).toEqual({ maxBytes: 5_000 })
  expect(defineQueue({ name: 'mail', limits: { maxAge: '1s' } }).limits).toEqual({ maxAgeMs: 1_000 })
})

test('a queue has limits for each API key', () => {
  const { limits } = defineQueue({
    name: 'mail',
    limits: { perApiKey: { enqueueRate: '100/1s', maxUnfinishedTasks: 5 } },
  })
  expect(limits).toEqual({ perApiKey: { enqueueRate: { max: 100, perMs: 1_000 }, maxUnfinishedTasks: 5 } })
})

test.each([{ name: 'mail' }, { name: 'mail', limits: {} }, { name: 'mail', limits: { perApiKey: {} } }])(
  'the queue %j has no limits',
  (options) => {
    expect(defineQueue(options).limits).toBeUndefined()
    expect(defineCatalogue(task('mail.send', 'mail')).queue('mail').limits).toBeUndefined()
  },
)

test('the definitions of a queue share one set of limits, which the catalogue returns', () => {
  const mail = defineQueue({ name: 'mail', limits: { maxTasks: 5 } })
  const catalogue = defineCatalogue(task('mail.send', mail), task('mail.drop', mail))
  expect(catalogue.queue('mail').limits).toEqual({ maxTasks: 5 })
  const other = defineQueue({ name: 'mail', limits: { maxTasks: 6 } })
  expect(() => defineCatalogue(task('mail.send', mail), task('mail.drop', other))).toThrow(
    /limits of queue 'mail' is \{"maxTasks":5\} in 'mail.send' and \{"maxTasks":6\} in 'mail.drop'/,
  )
})

test.each([
  [
    { maxTask: 5 },
    'limits.maxTask is not a limit; expected maxTasks, maxBytes, maxAge, perApiKey, perConcurrencyKey or permits; did you mean maxTasks?',
  ],
  [{ maxTasks: 0 }, 'limits.maxTasks is 0; expected a whole number of at least 1'],
  [{ maxTasks: 1.5 }, 'limits.maxTasks is 1.5'],
  [{ maxTasks: '5' }, 'limits.maxTasks is "5"'],
  [{ maxBytes: '64MB' }, 'limits.maxBytes is "64MB"; expected a whole number with MiB or GiB'],
  [{ maxBytes: 0 }, "limits.maxBytes is 0; expected an amount such as '64MiB', or a number of bytes"],
  [{ maxBytes: null }, 'limits.maxBytes is null'],
  [7, 'limits is 7; expected an object'],
  [{ perApiKey: 'none' }, 'limits.perApiKey is "none"; expected an object'],
  [{ perApiKey: { rate: '1/1s' } }, 'limits.perApiKey.rate is not a limit; expected enqueueRate or maxUnfinishedTasks'],
  [{ perApiKey: { maxUnfinishedTasks: 0 } }, 'limits.perApiKey.maxUnfinishedTasks is 0; expected a whole number'],
  [
    { perApiKey: { enqueueRate: '100' } },
    `limits.perApiKey.enqueueRate is "100"; expected a number of tasks per period, such as '100/1s'`,
  ],
])('the limits %j are rejected', (limits, message) => {
  // Plain JavaScript may pass what the types refuse.
  expect(() => defineQueue({ name: 'mail', limits: limits as never })).toThrow(
    expect.objectContaining({ code: 'invalid_definition', message: expect.stringContaining(message) }),
  )
})

test('an age without a unit is rejected, and the error names the limit', () => {
  // Plain JavaScript may pass what the types refuse.
  expect(() => defineQueue({ name: 'mail', limits: { maxAge: 30 as never } })).toThrow(
    expect.objectContaining({ code: 'invalid_duration', message: expect.stringContaining('limits.maxAge is 30') }),
  )
})
