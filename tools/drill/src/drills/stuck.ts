// Drill `stuck`: queues are stuck for different reasons, each on a platform of its own. From bullpen doctor and the alerts, every cause can
// be told from the others, and the remedy of its runbook lets all tasks complete.
//
// For each cause, the drill prints to standard error what `bullpen top`, `bullpen doctor` and the alerts show. Their conditions are
// evaluated by a real Prometheus, but the times for which they have to hold are not waited for.
import type { DiagnosisCheck } from '@bullpen/contract'
import type { Drill } from '../drill.ts'
import { withDrillSetup } from '../environment/drill-setup.ts'
import type { Figures } from '../figures/figures.ts'
import { figuresOf } from '../figures/tasks.ts'
import { holdsWithin } from '../holds-within.ts'
import { CAUSES, type Cause } from '../stuck/causes.ts'
import { openPlatform, type Platform } from '../stuck/platform.ts'

/** A diagnosis calls a task late if it has waited for a minute. */
const SHOWN_WITHIN_MS = 150_000
const ALERTED_WITHIN_MS = 60_000
const DONE_WITHIN_MS = 120_000
/** With more platforms, a small machine would be so busy that Redis seems to be slow for all of them. */
const PLATFORMS_AT_ONCE = 2

export const stuck: Drill = {
  name: 'stuck',
  target: () => ({
    text: `queues are stuck for ${CAUSES.length} reasons: for each, bullpen doctor has a finding that it has for no other, and the condition of its alert holds; once the cause is removed, every task completes`,
    atMost: { causesUnseen: 0, causesConfused: 0 },
  }),
  known: undefined,
  comparable: false, // it has neither a diagnosis nor alerts
  run: async () => {
    const seen = await lookAtAll(CAUSES)
    const found = (finding: DiagnosisCheck) => seen.filter(({ findings }) => findings.includes(finding))
    return {
      ...figuresOf({
        accepted: seen.flatMap(({ ledger }) => ledger.accepted),
        ends: new Map(seen.flatMap(({ ledger }) => [...ledger.ends])),
        completions: new Map(seen.flatMap(({ ledger }) => [...ledger.completions])),
        effects: seen.flatMap(({ ledger }) => ledger.effects),
        interruptions: [],
        exits: [],
      }),
      causes: CAUSES.length,
      causesUnseen: seen.filter(({ isShown }) => !isShown).length,
      causesConfused: CAUSES.filter(({ finding }) => found(finding).length > 1).length,
    } satisfies Figures
  },
}

async function lookAtAll(causes: readonly Cause[]) {
  const left = [...causes]
  const seen: Awaited<ReturnType<typeof lookAt>>[] = []
  const lane = async (): Promise<void> => {
    for (let cause = left.shift(); cause !== undefined; cause = left.shift()) seen.push(await lookAt(cause))
  }
  await Promise.all(Array.from({ length: PLATFORMS_AT_ONCE }, lane))
  return seen
}

/** Makes a queue stuck, notes what is shown of it, and mends it. */
function lookAt(cause: Cause) {
  return withDrillSetup('bullpen', {}, async (setup) => {
    await using opened = new AsyncDisposableStack()
    const platform = opened.adopt(await openPlatform(setup), (each) => each.close())
    const { accepted, mend, close } = await cause.begin(platform)
    opened.defer(async () => close?.())
    const { findings, isShown } = await watch(cause, platform)
    await mend?.()
    await platform.untilIdle(DONE_WITHIN_MS)
    const { effects, ends, completions } = await platform.records(accepted)
    const own = new Set<string>(accepted)
    return {
      findings,
      isShown,
      ledger: {
        accepted,
        effects: effects.filter(({ id }) => own.has(id)),
        ends: new Map([...ends].filter(([id]) => own.has(id))),
        completions: new Map([...completions].filter(([id]) => own.has(id))),
      },
    }
  })
}

/** Waits until the cause is shown, prints everything that is shown then, and returns what the diagnosis has found. */
async function watch({ name, finding, alert }: Cause, { client, bullpen, alerts }: Platform) {
  const diagnose = async (): Promise<readonly DiagnosisCheck[]> => {
    const diagnosis = await client.diagnose().catch(() => undefined)
    return diagnosis?.findings.map(({ check }) => check) ?? []
  }
  await holdsWithin(SHOWN_WITHIN_MS, async () => (await diagnose()).includes(finding))
  let holding: readonly string[] = []
  const isAlerted = await holdsWithin(ALERTED_WITHIN_MS, async () => {
    holding = await alerts()
    return alert === undefined || holding.includes(alert)
  })
  // By now, the worker that has just started is registered, so nothing is found that is not there.
  const findings = await diagnose()
  const shown = [`=== ${name}`, await bullpen('top', '--once'), await bullpen('doctor')]
  console.error([...shown, `alerts whose condition holds: ${holding.join(', ') || 'none'}\n`].join('\n'))
  return { findings, isShown: isAlerted && findings.includes(finding) }
}
