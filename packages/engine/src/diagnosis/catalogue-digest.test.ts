// Tests the digests by which processes notice that their catalogues differ.
import { defineTask } from '@bullpen/contract'
import { expect, it } from 'vitest'
import { z } from 'zod'
import { sha256 } from '../node/index.ts'
import { catalogueDigests } from './catalogue-digest.ts'

const input = z.object({})
const define = (name: `${string}.${string}`, queue: string, more: { version?: number; kind?: 'short' } = {}) =>
  defineTask({ name, queue, input, output: input, ...more })
const digestOf = (...definitions: readonly ReturnType<typeof define>[]) =>
  catalogueDigests({ definitions }, ['cpu'], sha256)['cpu']

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
] as const)('another %s makes another digest', (_what, definitions) => {
  expect(digestOf(...definitions)).not.toBe(digestOf(a, b))
})
