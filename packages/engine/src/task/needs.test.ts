// What new tasks need, however they are enqueued, and the capacities of a queue's limiters.
import { defineCatalogue, defineQueue, defineTask } from '@bullpen/contract'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { storedTemplate, templateTask } from '../follow-ups/template.ts'
import { bareTask } from './bare-task.ts'
import { capacitiesOf, needsOf } from './needs.ts'

const data = defineQueue({ name: 'data', limits: { permits: { db: 10, gpu: { total: 8, share: 0.5 } } } })
const input = z.object({})
const load = defineTask({ name: 'data.load', queue: data, input, permits: { gpu: 1, db: 3 }, concurrency: 5 })
const look = defineTask({ name: 'data.look', queue: data, input })
const mail = defineTask({ name: 'mail.send', queue: 'mail', input, concurrency: 2 })
const catalogue = defineCatalogue(load, look, mail)

const NEEDS = [
  { limiter: 'permits:gpu', amount: 1 },
  { limiter: 'permits:db', amount: 3 },
  { limiter: 'task:data.load', amount: 1 },
]

test('the capacities of a queue are its permits and the concurrency of its task definitions', () => {
  expect(capacitiesOf(catalogue, 'data')).toEqual({ 'permits:db': 10, 'permits:gpu': 4, 'task:data.load': 5 })
  expect(capacitiesOf(catalogue, 'mail')).toEqual({ 'task:mail.send': 2 })
  expect(capacitiesOf(catalogue, 'unknown')).toEqual({})
})

test('a task needs what its definition says, even as a follow-up, and other tasks need nothing', () => {
  const origin = { id: 'data-0' as never, enqueuedAt: 0, correlationId: undefined }
  const task = bareTask(load, {}, {}, origin)
  expect(task.needs).toEqual(NEEDS)
  expect(bareTask(look, {}, {}, origin).needs).toBeUndefined()
  const template = storedTemplate({ ...task, expiresInMs: undefined } as never, undefined)
  expect(templateTask(template, origin.id, 0).needs).toEqual(NEEDS)
})

test('in another queue, a task needs only the permits that this queue also has', () => {
  const other = defineQueue({ name: 'other', limits: { permits: { db: 2 } } })
  expect(needsOf(load, other)).toEqual([{ limiter: 'permits:db', amount: 3 }])
  expect(needsOf(mail, other)).toBeUndefined()
})
