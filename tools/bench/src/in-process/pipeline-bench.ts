// Compares a pipeline within one process with a bare pool of promises, p-map, on the same work.
import { performance } from 'node:perf_hooks'
import { definePipeline, runPipeline, streamPipeline } from '@bullpen/pipeline'
import pMap, { pMapIterable } from 'p-map'
import { measurePairs } from '../measuring/pairs.ts'
import { type Result, resultOf } from '../measuring/report.ts'
import { roundsPerMicrosecond, spin } from '../measuring/spin.ts'

const PAIRS = 7
const CONCURRENCY = 10

interface Case {
  readonly name: string
  readonly items: number
  readonly work: (item: number) => Promise<number>
  readonly isStreamed?: boolean
}

function cases(): readonly Case[] {
  const perMicrosecond = roundsPerMicrosecond()
  const cpu = (microseconds: number) => {
    const rounds = Math.round(perMicrosecond * microseconds)
    return async (item: number) => item + spin(rounds)
  }
  const wait = (item: number) => new Promise<number>((resolve) => setTimeout(resolve, 1, item))
  return [
    { name: 'items that return at once', items: 100_000, work: async (item) => item },
    { name: 'items of 10 µs', items: 50_000, work: cpu(10) },
    { name: 'items of 10 µs, streamed', items: 50_000, work: cpu(10), isStreamed: true },
    { name: 'items of 100 µs', items: 5_000, work: cpu(100) },
    { name: 'items of 1 ms', items: 500, work: cpu(1_000) },
    { name: 'items that wait for 1 ms', items: 5_000, work: wait },
  ]
}

async function sumOf(items: AsyncIterable<number>): Promise<number> {
  let sum = 0
  for await (const item of items) sum += item
  return sum
}

const total = (items: readonly number[]): number => items.reduce((sum, item) => sum + item, 0)

/** Yields the items per second of both sides, for {@link CONCURRENCY} calls at a time. */
export async function* benchPipeline(): AsyncGenerator<Result> {
  for (const { name, items, work, isStreamed = false } of cases()) {
    const numbers = Array.from({ length: items }, (_, i) => i)
    const options = { concurrency: CONCURRENCY }
    const pipeline = definePipeline('bench').source(numbers).map(work, options)
    const ours = isStreamed ? () => sumOf(streamPipeline(pipeline)) : async () => total(await runPipeline(pipeline))
    const theirs = isStreamed
      ? () => sumOf(pMapIterable(numbers, work, options))
      : async () => total(await pMap(numbers, work, options))
    const expected = await theirs()
    const perSecond = async (side: () => Promise<number>): Promise<number> => {
      const began = performance.now()
      const sum = await side()
      const seconds = (performance.now() - began) / 1_000
      if (sum !== expected) throw new Error(`the sum is ${sum} instead of ${expected}`)
      return items / seconds
    }
    await perSecond(ours)
    yield resultOf(
      'pipeline',
      `beside p-map: ${name}`,
      'items/s',
      await measurePairs(
        PAIRS,
        () => perSecond(ours),
        () => perSecond(theirs),
      ),
    )
  }
}
