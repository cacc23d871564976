// The permits and caps that a pool in memory takes from its catalogue. The conformance suite tests how tasks wait for them.
import { defineCatalogue, defineHandler, defineQueue, defineTask } from '@bullpen/contract'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { fakeClock } from '../fake-clock.ts'
import { memoryPool } from '../test-pool.ts'
import { memoryBroker } from './memory-broker.ts'

it('a pool in memory takes permits and caps from its catalogue, until they are replaced', async () => {
  const queue = defineQueue({ name: 'data', limits: { permits: { db: 3 } } })
  const common = { queue, input: z.object({}), output: z.object({}) } as const
  const look = defineTask({ ...common, name: 'data.look', permits: { db: 2 } })
  const load = defineTask({ ...common, name: 'data.load', concurrency: 1 })
  const catalogue = defineCatalogue(look, load)
  const clock = fakeClock()
  const broker = memoryBroker({ clock })
  const over = Promise.withResolvers<Record<string, never>>()
  const handlers = {
    'data.look': defineHandler(look, import.meta.url, () => over.promise),
    'data.load': defineHandler(load, import.meta.url, () => over.promise),
  }
  const pool = memoryPool(broker, { catalogue, handlers, clock, queue: 'data', concurrency: 10 })
  await pool.start()
  await broker.add(look, {})
  await broker.add(load, {})
  const [nextLook, nextLoad] = [await broker.add(look, {}), await broker.add(load, {})]
  await clock.advance(0)
  expect(pool.busy()).toBe(2)
  expect((await broker.find(nextLook))?.waitsFor).toEqual({ kind: 'permits', limiter: 'db', ahead: 0 })
  expect((await broker.find(nextLoad))?.waitsFor).toEqual({ kind: 'definition', limiter: 'data.load', ahead: 0 })
  broker.limitPermits('data', { db: 4 })
  broker.limitDefinition('data', 'data.load', 2)
  await clock.advance(0)
  expect(pool.busy()).toBe(4)
  over.resolve({})
  await clock.advance(0)
  expect((await broker.counts('data')).completed).toBe(4)
  broker.limitPermits('data', { db: 'none' })
  await broker.add(look, {})
  const last = await broker.add(look, {})
  await clock.advance(0)
  expect((await broker.find(last))?.status).toBe('completed')
  await broker.close()
})
