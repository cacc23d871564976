// Random pipelines for the model test: what they consist of, and what they should return.
import fc from 'fast-check'

export type Item = string | readonly string[]

export type ProgramStage =
  | {
      readonly kind: 'map' | 'expand'
      readonly concurrency: number
      readonly buffer: number
      readonly isAsync: boolean
      /** Of eleven items, those with these numbers are dropped, or fail. */
      readonly drops: readonly number[]
      readonly fails: readonly number[]
    }
  | { readonly kind: 'batch'; readonly size: number }
  | { readonly kind: 'flat' }
  | { readonly kind: 'take'; readonly count: number }

export interface Program {
  readonly items: number
  /** The source throws instead of returning an item beyond the last one. */
  readonly sourceFails: boolean
  readonly sourceIsAsync: boolean
  readonly ordered: boolean
  readonly onError: 'cancel' | 'collect'
  readonly stages: readonly ProgramStage[]
  /** Whether the run is cancelled from outside at some time. */
  readonly aborts: boolean
}

const few = fc.oneof({ weight: 3, arbitrary: fc.constant([]) }, fc.uniqueArray(fc.nat(10), { maxLength: 2 }))
const call = <Kind extends 'map' | 'expand'>(kind: Kind) =>
  fc.record({
    kind: fc.constant(kind),
    concurrency: fc.oneof(fc.integer({ min: 1, max: 4 }), fc.constant(Number.POSITIVE_INFINITY)),
    buffer: fc.nat(4),
    isAsync: fc.boolean(),
    drops: few,
    fails: few,
  })
const flat = fc.constant({ kind: 'flat' } as const)
const batch = fc.record({ kind: fc.constant('batch' as const), size: fc.integer({ min: 1, max: 4 }) })
const take = fc.record({ kind: fc.constant('take' as const), count: fc.integer({ min: 1, max: 6 }) })

/** Groups of stages that take and return texts. Batches of unordered items have no predictable content. */
const groups = (ordered: boolean): fc.Arbitrary<readonly ProgramStage[]> =>
  fc.oneof(
    fc.tuple(call('map')),
    fc.tuple(call('expand'), flat),
    fc.tuple(take),
    ...(ordered ? [fc.tuple(batch, call('map')), fc.tuple(batch, flat), fc.tuple(batch, take, flat)] : []),
  )

export const programs: fc.Arbitrary<Program> = fc.boolean().chain((ordered) =>
  fc.record({
    items: fc.nat(14),
    sourceFails: fc.boolean(),
    sourceIsAsync: fc.boolean(),
    ordered: fc.constant(ordered),
    onError: fc.constantFrom('cancel' as const, 'collect' as const),
    stages: fc.array(groups(ordered), { maxLength: 4 }).map((all) => all.flat()),
    aborts: fc.oneof({ weight: 4, arbitrary: fc.constant(false) }, fc.constant(true)),
  }),
)

const hash = (text: string): number => [...text].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 10_007, 7)

/** A stage that calls a function. */
export type CallStage = ProgramStage & { readonly kind: 'map' | 'expand' }

/** What the function of a stage does with an item: it returns a value, or undefined, or throws a text. */
export function applied(stage: CallStage, index: number, item: Item): Item | undefined {
  const name = `${index}(${Array.isArray(item) ? item.join('+') : item})`
  if (stage.fails.includes(hash(name) % 11)) throw name
  if (stage.drops.includes(hash(name) % 11)) return undefined
  if (stage.kind === 'map') return name
  return Array.from({ length: hash(name) % 3 }, (_, i) => `${name}.${i}`)
}

export interface Expected {
  readonly outputs: readonly Item[]
  /** What the functions threw, in order. */
  readonly thrown: readonly string[]
  readonly sourceFailed: boolean
}

/** Runs the program with one item after the other, reading no more than is needed. Ends at an error only if nothing is collected. */
export function expectedOf(program: Program, stopsAtError: boolean): Expected {
  const thrown: string[] = []
  let sourceFailed = false
  function* source(): Generator<Item> {
    for (let i = 0; i < program.items; i++) yield String(i)
    sourceFailed = program.sourceFails
  }
  let items: Iterator<Item> = source()
  for (const [index, stage] of program.stages.entries()) items = staged(items, stage, index)
  function* staged(above: Iterator<Item>, stage: ProgramStage, index: number): Generator<Item> {
    let batch: string[] = []
    let taken = 0
    for (let step = above.next(); !step.done; step = above.next()) {
      const item = step.value
      if (stage.kind === 'take') {
        yield item
        if (++taken === stage.count) return
      } else if (stage.kind === 'flat') {
        yield* item as readonly string[]
      } else if (stage.kind === 'batch') {
        batch.push(item as string)
        if (batch.length < stage.size) continue
        yield batch
        batch = []
      } else {
        const result = attempted(() => applied(stage, index, item))
        if (result !== undefined) yield result
      }
      if (stopsAtError && thrown.length > 0) return
    }
    if (batch.length > 0) yield batch
  }
  function attempted<T>(act: () => T): T | undefined {
    try {
      return act()
    } catch (error) {
      thrown.push(String(error))
      return undefined
    }
  }
  const outputs: Item[] = []
  for (let step = items.next(); !step.done; step = items.next()) outputs.push(step.value)
  return { outputs, thrown, sourceFailed }
}
