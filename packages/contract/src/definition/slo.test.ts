// Tests which objectives definitions accept, and that a task has the objective of its queue unless its definition has one.
import { expect, test } from 'vitest'
import { z } from 'zod'
import { defineCatalogue } from './catalogue.ts'
import { defineQueue, type QueueDefinition } from './queue.ts'
import { defineTask, type TaskOptions } from './task-definition.ts'

const input = z.object({})
type Options = TaskOptions<'mail.send', typeof input, z.ZodVoid>
const task = (options: Partial<Options>, queue: string | QueueDefinition = 'mail') =>
  defineTask({ name: 'mail.send', queue, input, ...options } as Options)

test('99% of the tasks should start in time, unless the objective is another one', () => {
  expect(task({ slo: { startWithin: '30s' } }).slo).toEqual({ startWithinMs: 30_000, objective: 0.99 })
  expect(task({ slo: { startWithin: '1.5m', objective: 0.5 } }).slo).toEqual({ startWithinMs: 90_000, objective: 0.5 })
  expect(task({ kind: 'short', slo: { startWithin: '30s' } }).slo?.startWithinMs).toBe(30_000)
})

test('a task has the objective of its queue, unless its definition has one', () => {
  const mail = defineQueue({ name: 'mail', slo: { startWithin: '1m', objective: 0.9 } })
  expect(task({}, mail).slo).toEqual({ startWithinMs: 60_000, objective: 0.9 })
  expect(task({ slo: { startWithin: '5s' } }, mail).slo).toEqual({ startWithinMs: 5_000, objective: 0.99 })
  expect(task({}).slo).toBeUndefined()
})

test('a catalogue refuses two definitions of a queue with different objectives', () => {
  const definitions = [10, 20].map((seconds) => {
    const queue = defineQueue({ name: 'mail', slo: { startWithin: `${seconds}s` } })
    return defineTask({ name: `mail.in-${seconds}`, queue, input })
  })
  expect(() => defineCatalogue(...(definitions as [(typeof definitions)[0]]))).toThrow(
    /slo of queue 'mail' is \{"startWithinMs":10000,"objective":0.99\} in 'mail.in-10'/,
  )
})

test.each([
  ['30s', `slo is "30s"; expected an object such as { startWithin: '30s', objective: 0.99 }`],
  [{}, "slo.startWithin is missing; expected a duration such as '30s'"],
  [{ startWithin: '30s', target: 0.9 }, 'slo.target is not a setting; expected startWithin or objective'],
  [{ startWithin: '30s', objectiv: 0.9 }, 'did you mean objective?'],
  [{ startWithin: '30s', objective: 1 }, 'slo.objective is 1; expected a share from 0.5 to less than 1, such as 0.99'],
  [{ startWithin: '30s', objective: 99 }, 'slo.objective is 99'],
  [{ startWithin: '30s', objective: 0.4 }, 'slo.objective is 0.4'],
  [{ startWithin: '30s', objective: '0.9' }, 'slo.objective is "0.9"'],
])('the objective %j is refused', (slo, message) => {
  const refusal = expect.objectContaining({
    code: 'invalid_definition',
    message: expect.stringContaining(message),
  })
  // Plain JavaScript may pass what the types refuse.
  expect(() => task({ slo: slo as never })).toThrow(refusal)
  expect(() => defineQueue({ name: 'mail', slo: slo as never })).toThrow(refusal)
})

test('a time without a unit is refused, and the error names the task or the queue', () => {
  const slo = { startWithin: 30 as never }
  expect(() => task({ slo })).toThrow(/^slo.startWithin of mail.send is 30; expected a duration with a unit/)
  expect(() => defineQueue({ name: 'mail', slo })).toThrow(/^slo.startWithin of queue mail is 30;/)
})
