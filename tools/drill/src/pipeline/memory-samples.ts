// Measures what a run of a pipeline takes of Redis's memory, and computes the figures that show whether this is bounded.
import { setTimeout as sleep } from 'node:timers/promises'
import { blockingConnection } from '@bullpen/bullmq/internal'
import type { RunHandle } from '@bullpen/client'
import type { Log } from '@bullpen/contract'
import type { DrillSetup } from '../environment/drill-setup.ts'
import type { Figures } from '../figures/figures.ts'
import { rank } from '../ledger/ranks.ts'

export interface MemorySample {
  /**
   * What Redis stores in addition to what it stored before the run, without the results that it keeps for the reduction, and
   * without the ids of the tasks that have ended within the last 20 s, whose number follows the rate. The buffers of
   * connections, which come and go with the workers, are not included.
   */
  readonly bytes: number
  /** What Redis takes in addition to what it took before the run. */
  readonly usedBytes: number
  /** How many items wait for a stage. */
  readonly waiting: number
  /** How many results the run has. */
  readonly results: number
}

export interface Sampler {
  /** Takes samples while the source and the stages of the run have work. Resolves with the samples. */
  sample(run: RunHandle): Promise<readonly MemorySample[]>
}

const SILENT: Log = { debug() {}, info() {}, warn() {}, error() {} }
const KIB = 1_024
/** How many values show the memory over time. */
const SHOWN = 24

/** Measures what Redis stores and takes before a run. */
export async function openSampler(
  { redisUrl, namespace }: Pick<DrillSetup, 'redisUrl' | 'namespace'>,
  queues: readonly string[],
  everyMs: number,
): Promise<Sampler> {
  const redis = blockingConnection(redisUrl, SILENT)
  /** Returns the bytes of the ids of ended tasks. They are all of the same size, so that a few of them are enough for Redis's estimate. */
  const endedIds = async (): Promise<number> => {
    const keys = queues.map((queue) => `{${namespace}.${queue}}:${queue}:recently-removed`)
    const sizes = await Promise.all(keys.map((key) => redis.memory('USAGE', key)))
    return sizes.reduce<number>((sum, size) => sum + Number(size ?? 0), 0)
  }
  const [before, idsBefore] = [memoryOf(await redis.info('memory')), await endedIds()]
  return {
    async sample({ id, describe }) {
      const samples: MemorySample[] = []
      const results = `{${namespace}:${id}}:results`
      try {
        for (;;) {
          const [run, info, kept, ids] = await Promise.all([
            describe(),
            redis.info('memory'),
            redis.memory('USAGE', results, 'SAMPLES', 0),
            endedIds(),
          ])
          if (run.state !== 'running') return samples
          const { stored, used } = memoryOf(info)
          samples.push({
            bytes: stored - before.stored - Number(kept ?? 0) - (ids - idsBefore),
            usedBytes: used - before.used,
            waiting: run.stages.reduce((sum, stage) => sum + stage.waiting, 0),
            results: run.results,
          })
          await sleep(everyMs)
        }
      } finally {
        redis.disconnect()
      }
    },
  }
}

/** Reads how many bytes Redis takes, and how many of them are for what it stores, from the section `memory` of INFO. */
function memoryOf(info: string): { readonly stored: number; readonly used: number } {
  const field = (name: string): number => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1])
  return { stored: field('used_memory_dataset'), used: field('used_memory') }
}

type MemoryFigures = Pick<
  Figures,
  | 'memoryKiB'
  | 'memoryMinKiB'
  | 'memoryMedianKiB'
  | 'memoryMaxKiB'
  | 'memoryGrowthKiB'
  | 'usedMemoryMaxKiB'
  | 'waitingMost'
>

/**
 * Computes the figures of some runs of the same number of files. The samples of each run are in the order in which they were taken. The
 * growth is that of the runs after the first one, which fills what Redis keeps of each queue, such as its latest events.
 */
export function memoryFigures(runs: readonly (readonly MemorySample[])[], files: number): MemoryFigures {
  const all = runs.flat()
  const bytes = all.map((sample) => sample.bytes)
  const growths = runs.slice(1).map((samples) => growthOf(samples, files))
  return {
    memoryKiB: peaksOf(all).map(inKiB),
    memoryMinKiB: inKiB(Math.min(...bytes)),
    memoryMedianKiB: inKiB(rank(bytes, 0.5) ?? Number.NaN),
    memoryMaxKiB: inKiB(Math.max(...bytes)),
    memoryGrowthKiB: inKiB(Math.max(...growths)),
    usedMemoryMaxKiB: inKiB(Math.max(...all.map(({ usedBytes }) => usedBytes))),
    waitingMost: Math.max(...all.map(({ waiting }) => waiting)),
  }
}

/**
 * Returns by how much the peak of the last third of the results exceeds the peak of the first third, in bytes. Not a number if there is no
 * sample of one of them.
 */
function growthOf(samples: readonly MemorySample[], files: number): number {
  const peak = (matches: (share: number) => boolean): number => {
    const some = samples.filter(({ results }) => matches(results / files))
    return some.length === 0 ? Number.NaN : Math.max(...some.map(({ bytes }) => bytes))
  }
  return peak((share) => share >= 2 / 3) - peak((share) => share < 1 / 3)
}

/** Divides the samples into at most {@link SHOWN} parts of the same length, and returns the peak of each of them. */
function peaksOf(samples: readonly MemorySample[]): readonly number[] {
  const parts = Math.min(SHOWN, samples.length)
  return Array.from({ length: parts }, (_, part) => {
    const [from, to] = [part, part + 1].map((n) => Math.floor((n * samples.length) / parts))
    return Math.max(...samples.slice(from, to).map(({ bytes }) => bytes))
  })
}

function inKiB(bytes: number): number {
  return Math.round(bytes / KIB)
}
