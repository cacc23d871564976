// Converts a pipeline run to and from the fields of its hash.
import type { RunResult } from '@bullpen/contract'
import { batchSize, sectionsOf, stageRoom } from '@bullpen/contract/internal'
import type { Run, RunError, RunSettings } from '@bullpen/engine/internal'
import { END_LETTERS } from '../groups/end-letters.ts'
import { pairsOf } from '../scripts/pairs.ts'

/** The queues of a run's source and stages, and that of its reduction. */
export interface RunQueues {
  readonly queues: readonly string[]
  readonly reduceQueue: string | undefined
}

export function runQueues({ source, stages, reduce }: Pick<RunSettings, 'source' | 'stages' | 'reduce'>): RunQueues {
  return {
    queues: [...new Set([source.queue, ...stages.map(({ queue }) => queue)])],
    reduceQueue: reduce?.queue,
  }
}

/** Returns the fields that the scripts need of a run's settings, each name followed by its value. */
export function settingsFields(settings: RunSettings): readonly (string | number)[] {
  const { incarnation, onError, maxErrors, ordered, take, resultBatch, stages, reduce, keepMs } = settings
  const { queues } = runQueues(settings)
  const fields: Record<string, string | number> = {
    ...{ incarnation, onError, maxErrors, keepMs, stages: stages.length, queues: queues.join(' ') },
    ...(ordered && { ordered: '1' }),
    ...(take !== undefined && { take }),
    ...(resultBatch !== undefined && { [`batch${stages.length + 1}`]: resultBatch }),
    ...(reduce !== undefined && { reduceQueue: reduce.queue, maxBytes: reduce.maxBytes }),
  }
  for (const [i, { first, last, window }] of sectionsOf(settings).entries()) {
    fields[`window${i + 1}`] = window
    fields[`first${i + 1}`] = first
    fields[`last${i + 1}`] = last
    for (let stage = first; stage <= last; stage++) fields[`section${stage}`] = i + 1
  }
  for (const [i, { concurrency }] of stages.entries()) {
    const size = batchSize(settings, i + 1)
    fields[`concurrency${i + 1}`] = concurrency
    fields[`room${i + 1}`] = stageRoom(settings, i + 1)
    if (size !== undefined) fields[`batch${i + 1}`] = size
  }
  return Object.entries(fields).flat()
}

const ENDS = Object.fromEntries(Object.entries(END_LETTERS).map(([end, letter]) => [letter, end]))

/** Reads an error as the scripts store it: a stage, a position and the letter of an end. */
export function runErrorOf(text: string): RunError {
  const [stage, position, letter] = text.split(' ')
  return { stage: Number(stage), position: Number(position), end: ENDS[letter ?? ''] as RunError['end'] }
}

/** What is stored of a run besides its settings. */
export interface StoredRun {
  /** The fields of the run's hash, each name followed by its value. */
  readonly fields: readonly string[]
  /** How many items wait for each stage, and at last, how many outputs wait for the rest of a batch of results. */
  readonly waiting: readonly number[]
}

export function runOf(settings: RunSettings, { fields: flat, waiting }: StoredRun): Run {
  const fields = new Map(pairsOf(flat))
  const text = (name: string): string => fields.get(name) ?? ''
  const number = (name: string): number => Number(fields.get(name) ?? 0)
  const counts = (stage: number, waits: number): Run['stages'][number] => ({
    waiting: waits,
    running: number(`running${stage}`),
    completed: number(`completed${stage}`),
    dropped: number(`dropped${stage}`),
    failed: number(`failed${stage}`),
  })
  return {
    settings,
    state: text('state') as Run['state'],
    createdAt: number('createdAt'),
    timeoutAt: number('timeoutAt'),
    source: {
      state: text('source') as Run['source']['state'],
      segment: number('segment'),
      fencingToken: number('fencingToken'),
      emitted: number('emitted'),
      digest: text('digest'),
      cursor: text('cursor'),
      isExhausted: text('isExhausted') === '1',
      isWaiting: text('isWaiting') === '1',
    },
    stages: settings.stages.map((_, i) => counts(i + 1, waiting[i] ?? 0)),
    sections: sectionsOf(settings).map(({ last }, i) => ({
      entered: number(`entered${i + 1}`),
      left: number(`left${i + 1}`),
      batching: waiting[last] ?? 0,
    })),
    results: number('results'),
    resultBytes: number('resultBytes'),
    errors: number('errorCount'),
    firstError: fields.has('firstError') ? runErrorOf(text('firstError')) : undefined,
    stopped: fields.has('reason')
      ? {
          at: number('stoppedAt'),
          reason: text('reason') as NonNullable<Run['stopped']>['reason'],
          by: text('stoppedBy'),
        }
      : undefined,
    reduce: text('reduce') as Run['reduce'],
    output: text('output'),
    ended: fields.has('endedAt') ? { at: number('endedAt'), result: text('result') as RunResult } : undefined,
  }
}
