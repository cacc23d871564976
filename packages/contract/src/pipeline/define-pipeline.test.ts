// Tests what the definition of a pipeline contains and what it refuses.
import { describe, expect, test } from 'vitest'
import { definePipeline } from './define-pipeline.ts'

const digest = (path: string) => path.length
const refusal = (message: string) =>
  expect.objectContaining({ code: 'invalid_definition', message: expect.stringContaining(message) })

describe('the definition of a pipeline', () => {
  test('contains its stages in order, and the defaults', () => {
    const walk = () => ['a']
    const pipeline = definePipeline('digest-tree').source(walk).map(digest, { concurrency: 20 }).batch(10).take(3)
    expect(pipeline).toMatchObject({
      kind: 'pipeline',
      name: 'digest-tree',
      onError: 'cancel',
      maxErrors: 1_000,
      ordered: true,
      stages: [
        { kind: 'source', name: 'walk', from: walk },
        { kind: 'map', name: 'digest', run: digest, concurrency: 20, buffer: 20 },
        { kind: 'batch', name: 'batch', size: 10 },
        { kind: 'take', name: 'take', count: 3 },
      ],
    })
  })

  test('is not changed by stages that are added: each method returns another pipeline', () => {
    const start = definePipeline('p').source(['a'])
    expect(start.map(digest).stages).toHaveLength(2)
    expect(start.reduce((all) => all).stages).toHaveLength(2)
    expect(start.stages).toHaveLength(1)
    expect(Object.isFrozen(start) && Object.isFrozen(start.stages) && Object.isFrozen(start.stages[0])).toBe(true)
  })

  test('has names for stages without one', () => {
    const pipeline = definePipeline('p')
      .source([1])
      .map((n) => n)
      .fold((sum, n) => sum + n, 0)
    expect(pipeline.stages.map(({ name }) => name)).toEqual(['source', 'map', 'fold'])
  })

  test('has two stages for flatMap', () => {
    const pipeline = definePipeline('p')
      .source(['a'])
      .flatMap((text) => [text, text], { concurrency: 2 })
    expect(pipeline.stages.map(({ kind }) => kind)).toEqual(['source', 'map', 'flat'])
  })

  test.each<[string, () => unknown]>([
    ['invalid name', () => definePipeline('Digest tree')],
    ['invalid name', () => definePipeline('')],
    [
      'order is not a setting of a pipeline; did you mean ordered?',
      () => definePipeline('p', { order: true } as never),
    ],
    [
      `onError is "continue"; expected 'cancel' or 'collect'`,
      () => definePipeline('p', { onError: 'continue' as 'cancel' }),
    ],
    ['maxErrors is 0; expected an integer from 1 to 10,000', () => definePipeline('p', { maxErrors: 0 })],
    ['ordered is "yes"; expected true or false', () => definePipeline('p', { ordered: 'yes' as never })],
    [
      'source is 3; expected an iterable, such as an array or a generator, or an async iterable, such as a stream, or a function',
      () => definePipeline('p').source(3 as never),
    ],
    ['source is null', () => definePipeline('p').source(null as never)],
    ['source is the string "abc"; expected an iterable', () => definePipeline('p').source('abc')],
    ['source is an object that cannot be iterated', () => definePipeline('p').source({ a: 1 } as never)],
    ['concurrency is 0; expected a positive integer, or Infinity', () => define().map(digest, { concurrency: 0 })],
    ['buffer is -1; expected 0, a positive integer, or Infinity', () => define().map(digest, { buffer: -1 })],
    ['map was called with undefined; expected a function', () => define().map(undefined as never)],
    ['the size of a batch is 1.5; expected a positive integer', () => define().batch(1.5)],
    ['the count of take is 0; expected a positive integer', () => define().take(0)],
    ['reduce was called with a; expected a function', () => define().reduce('a' as never)],
    ['fold was called with a; expected a function', () => define().fold('a' as never, 0)],
    [
      'cannot be copied with structuredClone',
      () =>
        define().fold(
          (state) => state,
          () => 1,
        ),
    ],
  ])('is refused: %s', (message, act) => {
    expect(act).toThrow(refusal(message))
  })
})

const define = () => definePipeline('p').source(['a'])
