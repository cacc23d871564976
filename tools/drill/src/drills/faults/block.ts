// Drill `block`: handlers block the event loops of two workers, one for less than eventLoopStallLimit and one for longer.
import { setTimeout as sleep } from 'node:timers/promises'
import type { z } from 'zod'
import type { Drill } from '../../drill.ts'
import { type DrillSetup, withDrillSetup } from '../../environment/drill-setup.ts'
import type { Figures } from '../../figures/figures.ts'
import { figuresOf } from '../../figures/tasks.ts'
import { interruptedBy, restartsOf, runningWithin, signalsAfter } from '../../ledger/attempts.ts'
import type { Effect } from '../../ledger/effects.ts'
import { enqueueOne, enqueueSteadily } from '../../ledger/load.ts'
import { isolated, work } from '../../programs/catalogue.ts'
import type { Scale } from '../../report.ts'

type Output = z.output<typeof work.output>

interface StartedTask extends Effect {
  /** All tasks that were enqueued before the worker started one of them. */
  readonly ids: readonly string[]
}

interface Block {
  readonly ms: number
  readonly eventLoopStallLimitMs: number
}

interface Plan {
  readonly concurrency: number
  readonly bystanders: number
  /** Longer than a lock, which lasts 5 s. Without the renewal thread, the tasks would therefore be started elsewhere. */
  readonly shorter: Block
  /** The locks expire 5 s after eventLoopStallLimit, and the tasks are recovered at most 3 s later. */
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

const LOCK_MS = 5_000
const RECOVERY_MS = 10_000
const SIGNALLED_MS = 1_000
const IDLE_WITHIN_MS = 120_000
const POLL_MS = 20
const STARTED_WITHIN_MS = 120_000
/** How long a task that starts shortly before the longer block continues after that block, in ms. */
const OUTLAST_MS = 1_000

export const block: Drill = {
  name: 'block',
  target(scale) {
    const { concurrency, shorter, longer } = PLANS[scale]
    return {
      text: `event loop blocked for ${shorter.ms / 1_000} s: nothing restarted; for ${longer.ms / 1_000} s (eventLoopStallLimit ${longer.eventLoopStallLimitMs / 1_000} s): recovery <= 10 s after the limit, attempts signalled <= 1 s after the loop runs again, results refused; isolated tasks not restarted; the log names both handlers; metrics equal the ledger`,
      atMost: {
        restarted: concurrency,
        effectsRepeated: concurrency,
        restartedUnaffected: 0,
        attemptsUsed: 0,
        miscounted: 0,
        recoveryP99Ms: RECOVERY_MS,
        signalSlowestMs: SIGNALLED_MS,
        staleResultsStored: 0,
        stallsUnattributed: 0,
      },
    }
  },
  known: { startedTwice: '21 of 21, if the event loop is blocked for longer than a lock lasts' },
  comparable: false, // it renews locks in the blocked loop, and has no limit
  run: (scale, _seed, system) =>
    withDrillSetup(system, { pools: { drill: PLANS[scale].concurrency } }, (setup) => blockLoops(PLANS[scale], setup)),
}

async function blockLoops({ bystanders, shorter, longer, ratePerSecond }: Plan, setup: DrillSetup): Promise<Figures> {
  const { broker, fleet, untilIdle, records, logLines } = setup
  const start = ({ eventLoopStallLimitMs }: Block) => fleet.start({ eventLoopStallLimit: `${eventLoopStallLimitMs}ms` })
  const others = Array.from({ length: bystanders }, () => fleet.start())
  const [brief, lasting] = await Promise.all([start(shorter), start(longer), ...others])
  // These tasks may run in any worker. Each blocks the event loop of its own thread for as long as the shorter block lasts.
  const inThreads = await Promise.all(Array.from({ length: 4 }, () => enqueueOne(broker, isolated, { ms: shorter.ms })))
  await untilStarted(setup, inThreads)
  let over = false
  const enqueued = enqueueSteadily(broker, {
    tasks: ratePerSecond,
    ratePerSecond,
    more: () => !over,
    input: () => ({ ms: 250, listens: true }),
  })
  // This task is still running when the longer block is over, and it has to be signalled then.
  const outlasting = await startIn(setup, lasting.name, { ms: longer.ms + OUTLAST_MS, againMs: 250, listens: true })
  const [inBrief, inLasting] = await Promise.all(
    [
      { worker: brief.name, ms: shorter.ms },
      { worker: lasting.name, ms: longer.ms },
    ].map((blocks) => startIn(setup, blocks.worker, { ms: 0, listens: false, blocks })),
  )
  if (inBrief === undefined || inLasting === undefined) throw new Error('a task that blocks a loop is missing')
  await sleep(longer.ms)
  over = true
  const accepted = [...(await enqueued), ...inThreads, ...[outlasting, inBrief, inLasting].flatMap(({ ids }) => ids)]
  await untilIdle(IDLE_WITHIN_MS)

  const { effects, ends, ...rest } = await records(accepted)
  const overAt = inLasting.at + longer.ms
  // Tasks that ended during the block are excluded, because the worker cannot commit the result of an isolated handler during
  // the block.
  const lost = interruptedBy(
    effects.filter(({ what, at }) => at <= (what === 'start' ? overAt : inLasting.at)),
    lasting.name,
    inLasting.at + longer.eventLoopStallLimitMs,
  )
  // An attempt that ended shortly before the block is affected too if its commit was not sent any more. A commit that waits for longer
  // than a lock lasts is refused.
  const affected = runningWithin(effects, lasting.name, inLasting.at - LOCK_MS, overAt)
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
    restartedUnaffected: restartsOf(effects.filter(({ id }) => !affected.has(id))),
    staleResultsStored: lost.filter(({ id }) => (ends.get(id)?.output as Output | undefined)?.fencingToken === 1)
      .length,
    stallsUnattributed: [inBrief, inLasting].filter(({ id }) => !named.has(id)).length,
  }
}

async function untilStarted({ effects }: DrillSetup, ids: readonly string[]): Promise<void> {
  await found(() => ids.every((id) => effects().some((effect) => effect.id === id)))
}

/** Enqueues tasks until the worker has started one, because a task cannot be addressed to a particular worker. */
async function startIn(
  { broker, effects }: DrillSetup,
  worker: string,
  input: z.input<typeof work.input>,
): Promise<StartedTask> {
  const ids: string[] = []
  const start = await found(async () => {
    ids.push(await enqueueOne(broker, work, input))
    await sleep(POLL_MS)
    return effects().find((each) => each.worker === worker && ids.includes(each.id))
  })
  return { ...start, ids }
}

async function found<T>(look: () => T | undefined | false | Promise<T | undefined>): Promise<T> {
  const deadline = performance.now() + STARTED_WITHIN_MS
  while (performance.now() < deadline) {
    const value = await look()
    if (value) return value
    await sleep(POLL_MS)
  }
  throw new Error(`a task that the drill needs was not started within ${STARTED_WITHIN_MS} ms`)
}
