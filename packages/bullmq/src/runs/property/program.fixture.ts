// Generates random pipelines, what goes wrong with their items, and what happens to the processes that run them.
import fc from 'fast-check'

/** `once` fails the first attempt, and `drop` returns nothing. */
export type Fault = 'fail' | 'once' | 'drop'

export interface PlannedStage {
  readonly queue: 0 | 1
  readonly concurrency: number
  readonly buffer: number
  readonly batch: number | undefined
}

export interface PlannedRun {
  /** How many items the source yields, unless it fails. */
  readonly count: number
  readonly source: {
    readonly hasCursors: boolean
    readonly fails: { readonly at: number; readonly isFinal: boolean } | undefined
  }
  readonly stages: readonly PlannedStage[]
  /** By stage and number of the source's item, such as `1.17`. A batch has the faults of its items. */
  readonly faults: ReadonlyMap<string, Fault>
  readonly ordered: boolean
  readonly onError: 'cancel' | 'collect'
  readonly maxErrors: number
  readonly resultBatch: number | undefined
  readonly take: number | undefined
  readonly reduces: boolean
  /** Every how many items one is too large to be passed on through a queue. */
  readonly largeEvery: number | undefined
  /** After how many calls of its handlers a client cancels the run. */
  readonly cancelAfter: number | undefined
}

/**
 * - `kill`: a process vanishes, and another one starts.
 * - `kill leader`: the same, for the process that leads the namespace.
 * - `freeze`: a process is cut off until its tasks have been given to others, and then goes on.
 * - `drain`: a process is shut down as for a deploy, and another one starts.
 */
export type DisturbanceKind = 'kill' | 'kill leader' | 'freeze' | 'drain'

export interface Disturbance {
  readonly kind: DisturbanceKind
  /** How many handlers have been called by then, since the disturbance before. */
  readonly after: number
  /** Selects a process, unless the leader is killed. Wraps around. */
  readonly process: number
}

export interface Program {
  /** These run at the same time. */
  readonly runs: readonly PlannedRun[]
  /** How many slots each process has for each queue. */
  readonly slots: number
  /** Whether the queues keep completed tasks. */
  readonly keepsTasks: boolean
  readonly disturbances: readonly Disturbance[]
}

const MAX_STAGES = 3
const MAX_COUNT = 60

const rarely = <T>(arbitrary: fc.Arbitrary<T>) =>
  fc.oneof({ weight: 3, arbitrary: fc.constant(undefined) }, { weight: 1, arbitrary })

const fault = fc.tuple(
  fc.integer({ min: 1, max: MAX_STAGES }),
  fc.nat({ max: MAX_COUNT }),
  fc.constantFrom<Fault>('fail', 'once', 'drop'),
)

const batch = rarely(fc.integer({ min: 1, max: 4 }))

/**
 * Returns the number of the first stage whose batches contain different items in each run, if there is one: without order, the items behind
 * a stage are put into batches as they come.
 */
export function firstMixed({ ordered, stages }: Pick<PlannedRun, 'ordered' | 'stages'>): number | undefined {
  const index = ordered ? -1 : stages.findIndex((stage, i) => i > 0 && stage.batch !== undefined)
  return index < 0 ? undefined : index + 1
}

/** Lets nothing fail for good from the first mixed stage on, because it would be unknown which items are lost. */
function withKnownLosses(planned: PlannedRun): PlannedRun {
  const mixed = firstMixed(planned) ?? Number.POSITIVE_INFINITY
  const faults = [...planned.faults].map(
    ([name, kind]) => [name, Number.parseInt(name, 10) < mixed ? kind : 'once'] as const,
  )
  return { ...planned, faults: new Map(faults) }
}

const anyRun: fc.Arbitrary<PlannedRun> = fc.record({
  count: fc.nat({ max: MAX_COUNT }),
  source: fc.record({
    hasCursors: fc.boolean(),
    fails: rarely(fc.record({ at: fc.nat({ max: MAX_COUNT }), isFinal: fc.boolean() })),
  }),
  stages: fc.array(
    fc.record({
      queue: fc.constantFrom<0 | 1>(0, 1),
      concurrency: fc.integer({ min: 1, max: 5 }),
      buffer: fc.nat({ max: 5 }),
      batch,
    }),
    { minLength: 1, maxLength: MAX_STAGES },
  ),
  faults: fc
    .oneof(fc.constant([]), fc.array(fault, { maxLength: 8 }))
    .map((faults) => new Map(faults.map(([stage, position, kind]) => [`${stage}.${position}`, kind]))),
  ordered: fc.boolean(),
  onError: fc.constantFrom<'cancel' | 'collect'>('cancel', 'collect', 'collect'),
  maxErrors: fc.integer({ min: 1, max: 5 }),
  resultBatch: batch,
  take: rarely(fc.integer({ min: 1, max: 30 })),
  reduces: fc.boolean(),
  largeEvery: rarely(fc.integer({ min: 2, max: 20 })),
  cancelAfter: rarely(fc.nat({ max: 40 })),
})

const disturbance: fc.Arbitrary<Disturbance> = fc.record({
  kind: fc.constantFrom<DisturbanceKind>('kill', 'kill leader', 'freeze', 'drain'),
  after: fc.integer({ min: 1, max: 60 }),
  process: fc.nat({ max: 5 }),
})

export const program: fc.Arbitrary<Program> = fc.record({
  runs: fc.array(anyRun.map(withKnownLosses), { minLength: 4, maxLength: 8, size: 'max' }),
  slots: fc.integer({ min: 2, max: 6 }),
  keepsTasks: fc.boolean(),
  disturbances: fc.array(disturbance, { minLength: 1, maxLength: 3, size: 'max' }),
})
