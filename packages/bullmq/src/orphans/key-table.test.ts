// Each key has one row in the table, whatever the names in it are.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { groupKeys, queueKeys, runKeys } from '../keys.ts'
import { GROUP_KEYS, NAMESPACE_KEYS, QUEUE_KEYS, RUN_KEYS } from './key-table.ts'
import { PARTS, type PartName } from './rows/key-row.ts'
import { namespaceKeys } from './rows/namespace-rows.ts'
import { STRUCTURES } from './stored-key.ts'

const word = fc.stringMatching(/^[a-zA-Z0-9_.-]{1,12}$/)
const anyText = fc.string({ minLength: 1, maxLength: 20 })

/** What the variable parts of keys may be. */
const PART_VALUES: Readonly<Record<PartName, fc.Arbitrary<string>>> = {
  task: fc.oneof(
    fc.tuple(word, fc.stringMatching(/^[0-9a-z]{26}$/)).map(([queue, unique]) => `${queue}-${unique}`),
    fc.integer({ min: 1 }).map(String),
    fc.uuid(),
    fc.tuple(fc.constant('repeat'), word, fc.integer({ min: 1 })).map((parts) => parts.join(':')),
  ),
  fingerprint: fc.oneof(fc.constant('other'), fc.stringMatching(/^[0-9a-f]{16}$/)),
  'concurrency key': anyText,
  lane: anyText,
  need: anyText,
  definition: anyText,
  request: anyText,
  rule: anyText,
  process: anyText,
  worker: anyText,
  command: anyText,
  'api key': anyText,
  'deduplication id': anyText,
  scheduler: word,
  life: fc.integer({ min: 1 }).map(String),
  bucket: fc.stringMatching(/^[A-Za-z0-9_-]{2}$/),
  period: fc.integer({ min: 0, max: 3 }).map(String),
  'quarter day': fc.integer({ min: 1 }).map(String),
  digest: fc.stringMatching(/^[0-9a-f]{3}$/),
  group: fc.stringMatching(/^[0-9a-z]{26}$/).map((unique) => `group-${unique}`),
  stage: fc.integer({ min: 1 }).map(String),
}

const rowsOf = (
  rows: typeof QUEUE_KEYS | typeof NAMESPACE_KEYS | typeof GROUP_KEYS | typeof RUN_KEYS,
  below: string,
): readonly string[] => rows.flatMap(({ pattern, match }) => (match(below) === undefined ? [] : [pattern]))

describe.each([
  ['a queue', QUEUE_KEYS],
  ['a namespace', NAMESPACE_KEYS],
  ['a group', GROUP_KEYS],
  ['a run', RUN_KEYS],
] as const)('a key of %s', (_, rows) => {
  it.each(rows.map((row) => [row.pattern, row] as const))(
    'that is written as %s matches only its own row',
    (pattern) => {
      const names = [...pattern.matchAll(/<([^>]+)>/g)].map(([, name]) => name as PartName)
      fc.assert(
        fc.property(fc.tuple(...names.map((name) => PART_VALUES[name])), (values) => {
          let at = 0
          const below = pattern.replaceAll(/<[^>]+>/g, () => values[at++] ?? '')
          expect(rowsOf(rows, below)).toEqual([pattern])
        }),
      )
    },
  )
})

it('the first variable part of a key is found', () => {
  const found = (below: string) => QUEUE_KEYS.flatMap(({ match }) => match(below) ?? [])
  expect(found('cpu-1:lock')).toEqual(['cpu-1'])
  expect(found('repeat:nightly:1700000000000:logs')).toEqual(['repeat:nightly:1700000000000'])
  expect(found('idempotency:00086400:ab:2')).toEqual(['00086400'])
  expect(found('wait')).toEqual([''])
})

it.each(['wait:more', 'cpu-1:unheard-of', 'fingerprint:wrong', '', 'a:b:c'])('no row describes %j', (below) => {
  expect(rowsOf(QUEUE_KEYS, below)).toEqual([])
})

it('a task whose id begins other keys is recognised as a task', () => {
  expect(rowsOf(QUEUE_KEYS, 'de')).toEqual(['<task>'])
  expect(rowsOf(QUEUE_KEYS, 'metrics')).toEqual(['<task>'])
})

it('only keys without variable parts have entries that are checked, because the search names these keys itself', () => {
  expect(STRUCTURES.filter(({ parts }) => parts !== undefined).map(({ pattern }) => pattern)).toEqual([])
})

it('every key that the code names has a row', () => {
  const queue = Object.keys(queueKeys('n', 'q')).filter((name) => name !== 'base' && !name.endsWith('Channel'))
  expect(QUEUE_KEYS).toHaveLength(queue.length)
  const { base: _, ...namespace } = namespaceKeys('n')
  expect(NAMESPACE_KEYS).toHaveLength(Object.keys(namespace).length)
  expect(GROUP_KEYS).toHaveLength(Object.keys(groupKeys('n', 'g')).length - 1)
  expect(RUN_KEYS).toHaveLength(Object.keys(runKeys('n', 'r')).length - 1)
  expect(Object.keys(PARTS).sort()).toEqual(Object.keys(PART_VALUES).sort())
})
