// Tests which inputs the example tasks accept and reject.
import { describe, expect, test } from 'vitest'
import { catalogue, md5AllBounded, md5AllParallel, md5AllSerial } from './index.ts'

const accepted: [string, unknown][] = [
  ['math.factorial', { n: 0 }],
  ['math.factorial', { n: 1000 }],
  ['math.primes', { below: 1_000_000_000 }],
  ['files.digest', { path: '/a b\n\\/é😀' }],
  ['files.walk', { directory: '/' }],
  ['files.walk', { directory: '/a/', exclude: ['.git', 'dist'] }],
  ['receipt.send', { orderId: '1', to: 'ann@example.org', total: '19.90', currency: 'EUR' }],
]

const refused: [string, unknown][] = [
  ['math.factorial', { n: 1001 }],
  ['math.factorial', { n: -1 }],
  ['math.factorial', { n: 1.5 }],
  ['math.factorial', { n: '5' }],
  ['math.factorial', { n: 5, m: 1 }],
  ['math.primes', { below: 1_000_000_001 }],
  ['math.primes', { below: -1 }],
  ['files.digest', { path: '' }],
  ['files.digest', { path: 'relative' }],
  ['files.digest', { path: '/nul\0' }],
  ['files.digest', { path: '/\ud800' }],
  ['files.digest', { path: `/${'x'.repeat(4095)}` }],
  ['files.walk', { directory: './' }],
  ['files.walk', { directory: '/', exclude: Array(101).fill('x') }],
  ['files.sort-by-path', {}],
  ['receipt.send', { orderId: '', to: 'ann@example.org', total: '19.90', currency: 'EUR' }],
  ['receipt.send', { orderId: '1', to: 'ann', total: '19.90', currency: 'EUR' }],
  ['receipt.send', { orderId: '1', to: 'ann@example.org', total: 19.9, currency: 'EUR' }],
  ['receipt.send', { orderId: '1', to: 'ann@example.org', total: '-1', currency: 'EUR' }],
  ['receipt.send', { orderId: '1', to: 'ann@example.org', total: '19.90', currency: 'eur' }],
  // The endpoint comes from the worker's configuration, never from an input.
  ['receipt.send', { orderId: '1', to: 'a@example.org', total: '1', currency: 'EUR', endpoint: 'http://x' }],
]

describe('the catalogue', () => {
  test.each(accepted)('%s accepts %j', (name, input) => {
    expect(catalogue.get(name).input.safeParse(input)).toMatchObject({ success: true })
  })

  test.each(refused)('%s refuses %j', (name, input) => {
    expect(catalogue.get(name).input.safeParse(input)).toMatchObject({ success: false })
  })

  test('has a queue for each kind of load', () => {
    expect(catalogue.queues).toEqual(['cpu', 'files', 'mail'])
  })

  test.each([
    ['serial', md5AllSerial, 1],
    ['parallel', md5AllParallel, 1_000],
    ['bounded', md5AllBounded, 20],
  ])('has a %s MD5All', (mode, pipeline, concurrency) => {
    expect(catalogue.pipeline(`md5-all-${mode}`)).toBe(pipeline)
    expect(pipeline).toMatchObject({ onError: 'cancel', ordered: true, stages: [{ concurrency }] })
  })
})
