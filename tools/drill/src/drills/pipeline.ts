// Drill `pipeline`: the fleet computes the MD5 of every file of a tree. Workers are killed with SIGKILL at random moments, among them the
// leader, and one is stopped (SIGSTOP) for longer than its locks last. The output is compared with that of `md5sum`.
import { join } from 'node:path'
import { redis } from '@bullpen/bullmq'
import { blockingConnection } from '@bullpen/bullmq/internal'
import { createClient, type TaskClient } from '@bullpen/client'
import { definePipeline, runPipeline } from '@bullpen/pipeline'
import { md5Pipeline } from '@bullpen/tasks/files/fixtures'
import type { Drill } from '../drill.ts'
import { type DrillSetup, openRedis, withDrillSetup } from '../environment/drill-setup.ts'
import type { Figures } from '../figures/figures.ts'
import { figuresOf } from '../figures/tasks.ts'
import { holdsWithin } from '../holds-within.ts'
import { type Random, randomFrom } from '../ledger/random.ts'
import { digestFigures, type EndedRun } from '../pipeline/digest-figures.ts'
import { digestOf, filesBelow, listOf } from '../pipeline/digest-stages.ts'
import { type Disturbance, type Faults, inflict } from '../pipeline/faults.ts'
import { createFileTree } from '../pipeline/file-tree.ts'
import { type MemorySample, memoryFigures, openSampler } from '../pipeline/memory-samples.ts'
import { catalogue, DIGESTS, digestFile, digestTree, digestTreeUnordered, walk } from '../programs/catalogue.ts'

/** A run of the same pipeline, and what disturbs it. */
interface RunPlan {
  readonly pipeline: typeof digestTree
  readonly hasCursors: boolean
  readonly faults?: Faults
}

/** The first run of each scale is undisturbed, and shows how long the others take at least. */
const PLANS = {
  small: {
    ...{ files: 400, processes: 3, slots: 10, sampleMs: 10, keepMs: 60_000, awaitsExpiry: false },
    runs: [
      { pipeline: digestTree, hasCursors: true },
      { pipeline: digestTreeUnordered, hasCursors: false, faults: { kills: 1, leaderKills: 1, stopMs: 6_000 } },
    ],
  },
  full: {
    ...{ files: 20_000, processes: 4, slots: 10, sampleMs: 100, keepMs: 10_000, awaitsExpiry: true },
    runs: [
      { pipeline: digestTree, hasCursors: false },
      { pipeline: digestTree, hasCursors: false, faults: { kills: 3, leaderKills: 1, stopMs: 15_000 } },
      { pipeline: digestTreeUnordered, hasCursors: true, faults: { kills: 3, leaderKills: 1, stopMs: 15_000 } },
    ],
  },
} as const satisfies Record<string, { readonly runs: readonly RunPlan[] } & Record<string, unknown>>
type Plan = (typeof PLANS)[keyof typeof PLANS]

/** The drill starts runs, and does not know the ids of their tasks. */
const NO_TASKS = { accepted: [], ends: new Map(), completions: new Map(), exits: [] }
const UNDISTURBED: Disturbance = { interruptions: [], faultsWithoutEffect: 0 }
const QUEUES = [walk.queue, digestFile.queue]
const SILENT = { debug() {}, info() {}, warn() {}, error() {} }
const GONE_WITHIN_MS = 30_000
/** What PTTL returns for a key without an expiry. */
const NEVER_EXPIRES = -1
/** The share of a run's files after which it is not disturbed any more, so that no fault comes too late. */
const DISTURBED_SHARE = 0.7
const IDLE_WITHIN_MS = 30_000
/** By how much the memory of the last third of a run may exceed that of the first third. */
const GROWTH_KIB = 512
const MAX_OUTPUT_BYTES = 16_777_216

export const pipeline: Drill = {
  name: 'pipeline',
  target(scale) {
    const { files, runs } = PLANS[scale]
    const faults: readonly Faults[] = runs.flatMap((run) => ('faults' in run ? [run.faults] : []))
    const most = faults.reduce((sum, { kills, leaderKills }) => sum + kills + leaderKills + 1, 0) * DIGESTS
    return {
      text: `although workers and leaders are killed, and one is stopped for longer than its locks: ${runs.length} lists of ${files} files equal what md5sum prints; each file is counted once; only the runs' records are left, until they expire; Redis's memory does not grow with the number of files; restarts <= faults x concurrency of the stage (${most})`,
      atMost: {
        ...{ linesWrong: 0, misordered: 0, runsMiscounted: 0, undigested: 0, runKeysLeft: 0, tasksLeft: 0 },
        ...{ restarted: most, effectsRepeated: most, faultsWithoutEffect: 0 },
        // A small run may end before it has filled what Redis keeps of each queue.
        ...(scale === 'full' && { memoryGrowthKiB: GROWTH_KIB }),
      },
    }
  },
  known: undefined,
  comparable: false, // it has no pipelines
  run(scale, seed, system) {
    const plan = PLANS[scale]
    const pools = Object.fromEntries(QUEUES.map((queue) => [queue, plan.slots]))
    const open = async () => ({ ...(await openRedis()), queues: QUEUES })
    const config = { pools, maxOutputBytes: MAX_OUTPUT_BYTES }
    return withDrillSetup(system, config, (setup) => digestAll(plan, seed, setup), open)
  },
}

async function digestAll(plan: Plan, seed: number, setup: DrillSetup): Promise<Figures> {
  const { redisUrl, namespace, fleet, logLines } = setup
  const random = randomFrom(seed)
  const tree = createFileTree(plan.files, seed)
  const client = createClient({ transport: redis(redisUrl, { catalogue, namespace }) })
  try {
    const [printed, md5sumMs] = await timed(() => md5Pipeline(tree.directory))
    const [listed, oneProcessMs] = await timed(() => runPipeline(inOneProcess, tree.directory))
    if (listed.text !== printed) throw new Error('the pipeline in one process has not printed what md5sum prints')
    await Promise.all(Array.from({ length: plan.processes }, () => fleet.start()))
    const done: Done[] = []
    for (const run of plan.runs) {
      done.push(
        await digestOnce({
          run,
          plan,
          directory: tree.directory,
          client,
          random,
          setup,
        }),
      )
    }
    await fleet.end(IDLE_WITHIN_MS)
    const effects = done.flatMap((each) => each.effects)
    const interruptions = done.flatMap((each) => each.interruptions)
    const sum = (figure: 'faultsWithoutEffect' | 'keysLeft' | 'tasksLeft'): number =>
      done.reduce((total, each) => total + each[figure], 0)
    return {
      ...figuresOf({ ...NO_TASKS, effects, interruptions }),
      ...digestFigures(done, printed),
      ...memoryFigures(
        done.map(({ samples }) => samples),
        plan.files,
      ),
      faultsWithoutEffect: sum('faultsWithoutEffect'),
      runKeysLeft: sum('keysLeft'),
      tasksLeft: sum('tasksLeft'),
      lateResultsRefused: logLines().filter(({ msg }) => String(msg).startsWith('result dropped')).length,
      md5sumMs,
      oneProcessMs,
      undisturbedMs: done[0]?.ms ?? Number.NaN,
      disturbedMs: Math.max(...done.slice(1).map(({ ms }) => ms)),
    }
  } finally {
    await client.close()
    tree.remove()
  }
}

interface Done extends EndedRun, Disturbance {
  readonly samples: readonly MemorySample[]
  readonly ms: number
  /** Keys that name the run and are not its record, or that do not expire. */
  readonly keysLeft: number
  readonly tasksLeft: number
}

interface DigestOptions {
  readonly run: RunPlan
  readonly plan: Plan
  readonly directory: string
  readonly client: TaskClient
  readonly random: Random
  readonly setup: DrillSetup
}

async function digestOnce({ run, plan, directory, client, random, setup }: DigestOptions): Promise<Done> {
  const { broker, effects, untilIdle } = setup
  const { pipeline, hasCursors, faults } = run
  const sampler = await openSampler(setup, QUEUES, plan.sampleMs)
  const known = effects().length
  const started = (): number =>
    effects()
      .slice(known)
      .filter(({ what }) => what === 'start').length
  const startedAt = performance.now()
  const keep = `${plan.keepMs}ms` as const
  const handle = await client.startPipeline(pipeline, { directory, hasCursors }, { keep })
  let hasEnded = false
  const untilEnded = async () => {
    const view = await handle.waitUntilEnded({ timeout: '10m' })
    hasEnded = true
    const ms = Math.round(performance.now() - startedAt)
    return { view, ms, keysLeft: await keysLeft(setup, handle.id, plan) }
  }
  const [ended, samples, disturbance] = await Promise.all([
    untilEnded(),
    sampler.sample(handle),
    faults === undefined
      ? UNDISTURBED
      : inflict(faults, DISTURBED_SHARE * plan.files, { setup, random, started, hasEnded: () => hasEnded }),
  ])
  await untilIdle(IDLE_WITHIN_MS)
  const counts = await Promise.all(QUEUES.map((queue) => broker.counts(queue)))
  const tasksLeft = counts.flatMap((each) => Object.values(each)).reduce((sum, count) => sum + count, 0)
  return { ...ended, ...disturbance, isOrdered: pipeline.ordered, samples, effects: effects().slice(known), tasksLeft }
}

/** Returns how many keys name a run that has ended, except for its record. Where the plan says so, waits until the record has expired. */
async function keysLeft(
  { redisUrl, namespace }: DrillSetup,
  id: string,
  { keepMs, awaitsExpiry }: Plan,
): Promise<number> {
  const connection = blockingConnection(redisUrl, SILENT)
  // The cancel rules of a run contain the same suffix as its id.
  const keys = () => connection.keys(`*${id.slice(id.lastIndexOf('-'))}*`)
  const record = ['meta', 'definition'].map((name) => `{${namespace}:${id}}:${name}`)
  const others = async () => (await keys()).filter((key) => !record.includes(key))
  try {
    await holdsWithin(GONE_WITHIN_MS, async () => (await others()).length === 0)
    const lives = await Promise.all(record.map((key) => connection.pttl(key)))
    const lasting = lives.filter((ms) => ms > keepMs || ms === NEVER_EXPIRES).length
    if (awaitsExpiry) await holdsWithin(keepMs + GONE_WITHIN_MS, async () => (await keys()).length === 0)
    return lasting + (awaitsExpiry ? await keys() : await others()).length
  } finally {
    connection.disconnect()
  }
}

const inOneProcess = definePipeline('digest-tree')
  .source((directory: string) => pathsBelow(directory))
  .map(digestOf, { concurrency: DIGESTS })
  .reduce(listOf)

async function* pathsBelow(directory: string): AsyncGenerator<string> {
  for await (const path of filesBelow(directory)) yield join(directory, path)
}

async function timed<T>(act: () => Promise<T>): Promise<readonly [result: T, ms: number]> {
  const startedAt = performance.now()
  const result = await act()
  return [result, Math.round(performance.now() - startedAt)]
}
