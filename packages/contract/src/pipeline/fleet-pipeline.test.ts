// Tests how pipelines of tasks are defined, and what the compiler and the catalogue reject.
import { describe, expect, expectTypeOf, it } from 'vitest'
import { z } from 'zod'
import { defineCatalogue } from '../definition/catalogue.ts'
import { defineTask } from '../definition/task-definition.ts'
import { definePipeline } from './define-pipeline.ts'
import type { FleetPipeline, FleetPipelineDefinition } from './fleet-pipeline.ts'
import { defineReducer, defineSource } from './stage-definitions.ts'

const walk = defineSource({
  name: 'files.walk',
  queue: 'io',
  input: z.object({ directory: z.string() }),
  item: z.object({ path: z.string() }),
})
const digest = defineTask({
  name: 'files.digest',
  queue: 'cpu',
  input: z.object({ path: z.string() }),
  output: z.object({ path: z.string(), md5: z.string() }),
})
const sort = defineReducer({
  name: 'files.sort',
  queue: 'cpu',
  input: z.object({ directory: z.string() }),
  item: z.object({ path: z.string(), md5: z.string() }),
  output: z.array(z.string()),
})
const store = defineTask({
  name: 'files.store',
  queue: 'io',
  input: z.array(z.object({ path: z.string() })),
  output: z.object({ path: z.string() }),
})
const effect = defineTask({ name: 'files.touch', queue: 'io', input: z.object({ path: z.string() }) })

const pipeline = definePipeline('digest-tree').source(walk).map(digest, { concurrency: 20 }).reduce(sort)

describe('a pipeline of tasks', () => {
  it('contains its stages with their bounds, and does not change', () => {
    expect(pipeline).toMatchObject({
      kind: 'pipeline',
      name: 'digest-tree',
      onError: 'cancel',
      ordered: true,
      takes: undefined,
      source: { name: 'files.walk', timeoutMs: 'none' },
      stages: [{ task: digest, concurrency: 20, buffer: 20 }],
      reduction: { task: sort, maxBytes: 16 * 2 ** 20 },
    })
    expect(() => Object.assign(pipeline, { name: 'other' })).toThrow(TypeError)
  })

  it('begins and ends with tasks that may have the time limits of any long task', () => {
    const { name, queue, input, item } = walk
    const limited = defineSource({ name, queue, input, item, timeout: '1h', totalTimeout: '2h' })
    expect(limited).toMatchObject({ timeoutMs: 3_600_000, totalMs: 7_200_000 })
    expect(defineReducer({ name, queue, input, item, output: z.int(), timeout: '1m' })).toMatchObject({
      timeoutMs: 60_000,
    })
  })

  it('has the types of its first and its last stage', () => {
    expectTypeOf(pipeline).toExtend<FleetPipelineDefinition<{ directory: string }, string[]>>()
  })

  it('passes arrays to the stage or the reduction behind a batch', () => {
    const batched = definePipeline('x').source(walk).batch(100).map(store).map(digest, { concurrency: 2 }).batch(10)
    expect(batched).toMatchObject({
      stages: [
        { task: store, batch: 100 },
        { task: digest, batch: undefined },
      ],
      resultBatch: 10,
    })
    expectTypeOf(batched).toExtend<FleetPipeline<{ directory: string }, { path: string; md5: string }[]>>()
    // @ts-expect-error: the task takes a single path and not an array.
    const single = () => definePipeline('x').source(walk).batch(2).map(digest)
    // @ts-expect-error: the reduction takes single digests and not arrays.
    const reduced = () => definePipeline('x').source(walk).map(digest).batch(2).reduce(sort)
    expect([single, reduced]).toHaveLength(2)
  })

  it('counts in its window all items that its batches contain', () => {
    const bounds = { concurrency: 10, buffer: 0 }
    const of = (size: number) => () => definePipeline('x').source(walk).batch(size).map(store, bounds)
    expect(of(10_000)).not.toThrow()
    // 10 tasks with 5,000 items each, and the outputs of 10 tasks, which are made of 5,000 items each.
    expect(() => of(5_000)().map(digest, { ...bounds, buffer: 1 })).toThrow(
      'its stages can hold 105000 items; expected at most 100000',
    )
  })

  it('compiles only if each stage takes what the one before returns', () => {
    // @ts-expect-error: a digest is no item of a pipeline of paths and digests.
    const wrong = () => definePipeline('x').source(walk).reduce(sort)
    // @ts-expect-error: the output of a task without an output does not reach a further stage.
    const empty = () => definePipeline('x').source(walk).map(effect).map(digest)
    expect([wrong, empty]).toHaveLength(2)
  })

  it.each([
    [() => definePipeline('Digest'), 'invalid name'],
    [() => definePipeline('x', { order: true } as never), 'did you mean ordered?'],
    [() => definePipeline('x', { onError: 'stop' as never }), "expected 'cancel' or 'collect'"],
    [() => definePipeline('x', { maxErrors: 0 }).source(walk), 'maxErrors is 0'],
    [() => definePipeline('x').source(digest as never), 'expected an iterable'],
    [() => definePipeline('x').source(walk).map(digest, { concurrency: 0 }), 'concurrency is 0'],
    [() => definePipeline('x').source(walk).map(digest, { buffer: -1 }), 'buffer is -1'],
    [
      () => definePipeline('x').source(walk).batch(0),
      'the size of a batch is 0; expected a whole number from 1 to 10000',
    ],
    [() => definePipeline('x').source(walk).batch(2.5), 'the size of a batch is 2.5'],
    [() => definePipeline('x').source(walk).batch(10_001), 'the size of a batch is 10001'],
    [() => definePipeline('x').source(walk).batch(2).batch(2), 'batch was called twice in a row'],
    [() => definePipeline('x').source(walk).take(1).batch(2), 'take must be followed by reduce'],
    [() => definePipeline('x').source(walk).take(1).map(digest), 'take must be followed by reduce'],
    [() => definePipeline('x').source(walk).take(1).take(2), 'take was called twice'],
    [
      () =>
        definePipeline('x')
          .source(walk)
          .map(digest)
          .reduce(digest as never),
      'defineReducer',
    ],
  ])('is rejected if it is not valid (%#)', (define, message) => {
    expect(define).toThrow(
      expect.objectContaining({ code: 'invalid_definition', message: expect.stringContaining(message) }),
    )
  })
})

describe('a catalogue with pipelines', () => {
  it('finds a pipeline by its name', () => {
    const catalogue = defineCatalogue(walk, digest, sort, pipeline)
    expect(catalogue.pipeline('digest-tree')).toBe(pipeline)
    expect(catalogue.definitions).toEqual([walk, digest, sort])
    expect(() => catalogue.pipeline('digest-tre')).toThrow(
      expect.objectContaining({
        code: 'unknown_pipeline',
        message: expect.stringContaining('did you mean digest-tree?'),
      }),
    )
    expect(() => catalogue.pipeline('files.walk')).toThrow(`unknown pipeline "files.walk"; 'files.walk' is a task`)
  })

  it.each([
    [() => defineCatalogue(walk, digest, pipeline), "'files.sort', which is not in the catalogue"],
    [() => defineCatalogue(walk, digest, sort, pipeline, pipeline), 'two pipelines'],
    [() => defineCatalogue(walk, definePipeline('x').source(walk)), 'no stages'],
  ])('is rejected if a pipeline cannot run (%#)', (define, message) => {
    expect(define).toThrow(
      expect.objectContaining({ code: 'invalid_definition', message: expect.stringContaining(message) }),
    )
  })
})
