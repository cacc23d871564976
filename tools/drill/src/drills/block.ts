// Drill `block`: handlers hold the event loops of two processes, of one for less than eventLoopStallLimit and of one for longer.
import { setTimeout as sleep } from 'node:timers/promises'
import type { z } from 'zod'
import type { Drill } from '../drill.ts'
import { onStage, type Stage } from '../drill-setup.ts'
import type { Effect } from '../ledger/effects.ts'
import { cutShort, type Figures, figuresOf, restartsIn, signalsAfter } from '../ledger/figures.ts'
import { enqueueOne, enqueueSteadily } from '../ledger/load.ts'
import { apart, work } from '../programs/catalogue.ts'
import type { Scale } from '../report.ts'

type Output = z.output<typeof work.output>

interface Begun extends Effect {
  /** What was enqueued for it. */
  readonly ids: readonly string[]
}

interface Block {
  readonly ms: number
  readonly eventLoopStallLimitMs: number
}

interface Plan {
  readonly concurrency: number
  readonly bystanders: number
  /** Longer than a lock lasts, 5 s: without the renewing thread its tasks would be started elsewhere. */
  readonly shorter: Block
  /** Its locks run out 5 s after eventLoopStallLimit, and within 3 s more that is noticed. */
  readonly longer: Block
  readonly ratePerSecond: number
}

const PLANS: Readonly<Record<Scale, Plan>> = {
  small: {
    concurrency: 10,
    bystanders: 1,
    shorter: { ms: 6_500, eventLoopStallLimitMs: 30_000 },
    longer: { ms: 8_500, eventLoopStallLimitMs: 1_000 },
    ratePerSecond: 20,
  },
  full: {
    concurrency: 50,
    bystanders: 2,
    shorter: { ms: 8_000, eventLoopStallLimitMs: 30_000 },
    longer: { ms: 40_000, eventLoopStallLimitMs: 30_000 },
    ratePerSecond: 100,
  },
}

const RECOVERY_MS = 10_000
const SIGNALLED_MS = 1_000
const QUIET_WITHIN_MS = 60_000
const LOOK_MS = 20
const TAKEN_WITHIN_MS = 20_000
/** By which a task outlasts the longer block; it begins less than that before it. */
const OUTLAST_MS = 1_000

export const block: Drill = {
  name: 'block',
  target(scale) {
    const { concurrency, shorter, longer } = PLANS[scale]
    return {
      text: `a block of ${shorter.ms / 1_000} s: nothing started twice; of ${longer.ms / 1_000} s (eventLoopStallLimit ${longer.eventLoopStallLimitMs / 1_000} s): recovery <= 10 s from then, attempts aborted <= 1 s after the loop runs, results refused; isolated tasks elsewhere started once; both blockers named`,
      atMost: {
        restarted: concurrency,
        effectsRepeated: concurrency,
        restartedOthers: 0,
        attemptsUsed: 0,
        recoveryP99Ms: RECOVERY_MS,
        signalSlowestMs: SIGNALLED_MS,
        resultsKept: 0,
        blockersUnnamed: 0,
      },
    }
  },
  known: { startedTwice: '21 of 21, by a block that outlasts the lock' },
  comparable: false, // it renews in the loop that is blocked, and has no limit to compare
  run: (scale, _seed, side) =>
    onStage(side, { pools: { drill: PLANS[scale].concurrency } }, (stage) => holdLoops(PLANS[scale], stage)),
}

async function holdLoops({ bystanders, shorter, longer, ratePerSecond }: Plan, stage: Stage): Promise<Figures> {
  const { broker, fleet, quiet, records, logLines } = stage
  const start = ({ eventLoopStallLimitMs }: Block) => fleet.start({ eventLoopStallLimit: `${eventLoopStallLimitMs}ms` })
  const others = Array.from({ length: bystanders }, () => fleet.start())
  const [brief, lasting] = await Promise.all([start(shorter), start(longer), ...others])
  // In whichever process: it holds its own thread's loop for as long as the others hold theirs.
  const isolated = await Promise.all(Array.from({ length: 4 }, () => enqueueOne(broker, apart, { ms: shorter.ms })))
  await begun(stage, isolated)
  let over = false
  const enqueued = enqueueSteadily(broker, {
    tasks: ratePerSecond,
    ratePerSecond,
    more: () => !over,
    input: () => ({ ms: 250, listens: true }),
  })
  // One that is still running when the longer block is over: to hear of it.
  const outlasting = await startIn(stage, lasting.name, { ms: longer.ms + OUTLAST_MS, againMs: 250, listens: true })
  const [inBrief, inLasting] = await Promise.all(
    [
      { process: brief.name, ms: shorter.ms },
      { process: lasting.name, ms: longer.ms },
    ].map((blocks) => startIn(stage, blocks.process, { ms: 0, listens: false, blocks })),
  )
  if (inBrief === undefined || inLasting === undefined) throw new Error('both loops are held')
  await sleep(longer.ms)
  over = true
  const accepted = [...(await enqueued), ...isolated, ...[outlasting, inBrief, inLasting].flatMap(({ ids }) => ids)]
  await quiet(QUIET_WITHIN_MS)

  const { effects, ends, ...rest } = await records(accepted)
  const overAt = inLasting.at + longer.ms
  // What an isolated handler ends meanwhile, nobody hears of.
  const lost = cutShort(
    effects.filter(({ what, at }) => at <= (what === 'start' ? overAt : inLasting.at)),
    lasting.name,
    inLasting.at + longer.eventLoopStallLimitMs,
  )
  const lostIds = new Set(lost.map(({ id }) => id))
  const named = new Set(logLines().flatMap(({ id, stalledMs }) => (stalledMs === undefined ? [] : [id])))
  return {
    ...figuresOf({
      accepted,
      effects,
      ends,
      ...rest,
      interruptions: lost,
      exits: [],
      signals: signalsAfter(effects, lasting.name, overAt, SIGNALLED_MS),
    }),
    restartedOthers: restartsIn(effects.filter(({ id }) => !lostIds.has(id))),
    resultsKept: lost.filter(({ id }) => (ends.get(id)?.output as Output | undefined)?.start === 1).length,
    blockersUnnamed: [inBrief, inLasting].filter(({ id }) => !named.has(id)).length,
  }
}

async function begun({ effects }: Stage, ids: readonly string[]): Promise<void> {
  await taken(() => ids.every((id) => effects().some((effect) => effect.id === id)))
}

/** Enqueues tasks until the process has taken one: there is no way to give a task to a process. */
async function startIn({ broker, effects }: Stage, process: string, input: z.input<typeof work.input>): Promise<Begun> {
  const ids: string[] = []
  const begun = await taken(async () => {
    ids.push(await enqueueOne(broker, work, input))
    await sleep(LOOK_MS)
    return effects().find((each) => each.process === process && ids.includes(each.id))
  })
  return { ...begun, ids }
}

async function taken<T>(look: () => T | undefined | false | Promise<T | undefined>): Promise<T> {
  const deadline = performance.now() + TAKEN_WITHIN_MS
  while (performance.now() < deadline) {
    const found = await look()
    if (found) return found
    await sleep(LOOK_MS)
  }
  throw new Error('a task that the drill needs was not taken in time')
}
