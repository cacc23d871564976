// Tests the digests by which processes notice that their catalogues differ.
import {
  defineCatalogue,
  defineQueue,
  defineTask,
  type PerConcurrencyKeyOptions,
  type QueueDefinition,
  type QueueOptions,
} from '@bullpen/contract'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { sha256 } from '../node/index.ts'
import { catalogueDigests } from './catalogue-digest.ts'

const input = z.object({})
const define = (
  name: `${string}.${string}`,
  queue: string | QueueDefinition,
  more: { version?: number; kind?: 'short' } = {},
) => defineTask({ name, queue, input, output: input, ...more })
type Task = ReturnType<typeof define>
const digestOf = (first: Task, ...others: readonly Task[]) =>
  catalogueDigests(defineCatalogue(first, ...others), ['cpu'], sha256)['cpu']

const a = define('cpu.a', 'cpu')
const b = define('cpu.b', 'cpu')

it('a digest does not depend on the order of the definitions, or on those of other queues', () => {
  expect(digestOf(a, b)).toMatch(/^[\da-f]{12}$/)
  expect(digestOf(b, a, define('mail.a', 'mail'))).toBe(digestOf(a, b))
})

it.each([
  ['name', [a, define('cpu.c', 'cpu')]],
  ['number of definitions', [a]],
  ['version', [a, define('cpu.b', 'cpu', { version: 2 })]],
  ['kind', [a, define('cpu.b', 'cpu', { kind: 'short' })]],
] as const)('another %s makes another digest', (_what, [first, ...others]) => {
  expect(digestOf(first, ...others)).not.toBe(digestOf(a, b))
})

const queueDigest = (options: Omit<QueueOptions, 'name'>) =>
  digestOf(define('cpu.a', defineQueue({ name: 'cpu', ...options })))

it('other turns, weights or limits of concurrency keys change the digest, and another order of the same ones does not', () => {
  const limited = (perConcurrencyKey: PerConcurrencyKeyOptions) => queueDigest({ limits: { perConcurrencyKey } })
  const digests = [
    queueDigest({}),
    queueDigest({ fairness: true }),
    queueDigest({ fairness: { weights: { x: 2, y: 3 } } }),
    queueDigest({ fairness: { weights: { x: 3, y: 2 } } }),
    limited({ concurrency: 2 }),
    limited({ concurrency: 2, rate: '1/1s' }),
    limited({ concurrency: 2, keys: { x: { concurrency: 1 }, y: { concurrency: 3 } } }),
  ]
  expect(new Set(digests).size).toBe(digests.length)
  expect(queueDigest({ fairness: { weights: { y: 3, x: 2 } } })).toBe(digests[2])
  expect(limited({ keys: { y: { concurrency: 3 }, x: { concurrency: 1 } }, concurrency: 2 })).toBe(digests.at(-1))
  // Other settings of a queue need not be the same in all processes.
  expect(queueDigest({ whenFull: 'drop' })).toBe(digests[0])
})

const services = { crm: {}, smtp: {} }
const needDigest = (more: Parameters<typeof needs>[0] = {}) => digestOf(needs(more))
const needs = (more: { permits?: Record<string, number>; concurrency?: number; dependsOn?: readonly string[] }) =>
  defineTask({
    name: 'cpu.a',
    queue: defineQueue({ name: 'cpu', limits: { permits: { db: 3, gpu: 1 } }, breakers: services }),
    input,
    output: input,
    ...more,
  })

it('what tasks need, and what their queue has of it, makes another digest, in whatever order it is listed', () => {
  const digests = [
    queueDigest({}),
    queueDigest({ limits: { permits: { db: 3 } } }),
    queueDigest({ limits: { permits: { db: 3, gpu: 1 } } }),
    queueDigest({ breakers: services }),
    queueDigest({ breakers: { ...services, smtp: { openFor: '1m' } } }),
    needDigest(),
    needDigest({ permits: { db: 1 } }),
    needDigest({ permits: { db: 1, gpu: 1 } }),
    needDigest({ concurrency: 2 }),
    needDigest({ dependsOn: ['smtp'] }),
    needDigest({ dependsOn: ['crm', 'smtp'] }),
  ]
  expect(new Set(digests).size).toBe(digests.length)
  expect(queueDigest({ limits: { permits: { gpu: 1, db: 3 } } })).toBe(digests[2])
  expect(queueDigest({ breakers: { smtp: {}, crm: {} } })).toBe(digests[3])
  expect(needDigest({ permits: { gpu: 1, db: 1 } })).toBe(digests[7])
  expect(needDigest({ dependsOn: ['smtp', 'crm'] })).toBe(digests.at(-1))
})
