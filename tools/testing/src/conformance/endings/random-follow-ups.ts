// Tests that, whatever the follow-ups of a definition, a call and a handler are, the tasks that exist after the end are exactly those that
// the engine's model releases.
import { type FinalStatus, type FollowUps, followUp, TaskError, type TaskId } from '@bullpen/contract'
import type { StoredFollowUp } from '@bullpen/contract/internal'
import { releasedBy } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { amount } from '../../scale.ts'
import type { OpenBackend } from '../backend.ts'
import { AFTER, after, type Context, openSetup, QUEUE, ruled, untilStopped } from '../setup.ts'
import { fatal } from './compensation.ts'

const OPTIONS = { success: 'onSuccess', failure: 'onFailure', end: 'onEnd' } as const
type On = keyof typeof OPTIONS

interface Registration {
  readonly on: On
  readonly key: string
  readonly n: number
}

interface Plan {
  readonly status: FinalStatus
  /** How many follow-ups of each kind the definition has for the task. */
  readonly defined: Readonly<Record<On, number>>
  readonly called: readonly { readonly on: On; readonly n: number }[]
  /** What the handler registers in each attempt. All attempts but the last one fail. */
  readonly attempts: readonly (readonly Registration[])[]
}

const on = fc.constantFrom<On>('success', 'failure', 'end')
const count = fc.integer({ min: 0, max: 3 })
const registration = fc.record({ on, key: fc.constantFrom('', 'a', 'b'), n: fc.integer({ min: 2_000, max: 2_999 }) })
const plan: fc.Arbitrary<Plan> = fc.record({
  status: fc.constantFrom<FinalStatus>('completed', 'dead', 'cancelled', 'expired'),
  defined: fc.record({ success: count, failure: count, end: count }),
  called: fc.array(fc.record({ on, n: fc.integer({ min: 1_000, max: 1_999 }) }), { maxLength: 3 }),
  attempts: fc.array(fc.array(registration, { maxLength: 3 }), { minLength: 1, maxLength: 2 }),
})

function callOf({ called }: Plan): FollowUps {
  const of = (kind: On) => called.flatMap((each) => (each.on === kind ? [followUp(after, { n: each.n })] : []))
  return { onSuccess: of('success'), onFailure: of('failure'), onEnd: of('end') }
}

/** Registers what the plan says, and ends the attempt. */
async function handlePlan({ status, attempts }: Plan, context: Context, onEntered: () => void): Promise<unknown> {
  for (const { on: kind, key, n } of attempts[context.attempt - 1] ?? [])
    await context[OPTIONS[kind]](after, { n }, { key })
  if (context.attempt < attempts.length) throw new TaskError('busy', 'not yet', { retryAfter: '10ms' })
  if (status === 'dead') throw fatal()
  if (status === 'completed') return { n: 0 }
  onEntered()
  return untilStopped(context)
}

/** Returns the inputs of the follow-ups that the model releases. */
function modelOf({ status, defined, called, attempts }: Plan): readonly number[] {
  const runs = status === 'expired' ? [] : attempts
  const registered = new Map<string, Registration>()
  for (const each of runs.flat()) if (each.on !== 'success') registered.set(`${each.on} ${each.key}`, each)
  const added = new Map((runs.at(-1) ?? []).flatMap((each) => (each.on === 'success' ? [[each.key, each.n]] : [])))
  const ofDefinition = (kind: On, first: number) =>
    Array.from({ length: defined[kind] }, (_, i) => ({ on: kind, n: first + i }))
  const all = [
    ...ofDefinition('success', 100),
    ...ofDefinition('failure', 200),
    ...ofDefinition('end', 300),
    ...called,
    ...registered.values(),
    ...[...added.values()].map((n) => ({ on: 'success' as const, n })),
  ]
  return releasedBy(all.map(stored), status)
    .map(({ template }) => Number(template.data))
    .toSorted((a, b) => a - b)
}

const stored = (each: { readonly on: On; readonly n: number }): StoredFollowUp => ({
  on: each.on,
  template: { queue: AFTER, task: after.name, attempts: 1, priority: 0, data: `${each.n}` },
})

async function runPlans(open: OpenBackend, plans: readonly Plan[]): Promise<void> {
  const planOf = new Map<TaskId, Plan>()
  const entered: TaskId[] = []
  const setup = await openSetup(open, {
    locks: 'quick',
    concurrency: 10,
    handle: (context) =>
      handlePlan(planOf.get(context.id) ?? expect.fail(context.id), context, () => entered.push(context.id)),
  })
  const { broker, create, start, settled } = setup
  const ended = plans.map(async (one) => {
    const expires = one.status === 'expired'
    const task = create(ruled, { n: 0, ...one.defined }, { ...callOf(one), ...(expires && { queueTimeout: '1ms' }) })
    planOf.set(task.id, one)
    await broker.enqueue(task)
    const record = await settled(task.id)
    return { id: task.id, status: record?.status, model: modelOf(one) }
  })
  // These tasks expire before a worker could start them.
  await Promise.all(ended.flatMap((each, i) => (plans[i]?.status === 'expired' ? [each] : [])))
  await start()
  const cancels = plans.filter(({ status }) => status === 'cancelled').length
  await eventually(async () => {
    for (const id of entered) await broker.cancel(id, { stoppable: true })
    return entered.length === cancels
  })
  const results = await Promise.all(ended)
  await eventually(async () => (await broker.totals(QUEUE)).outbox.entries === 0)
  const found = new Map<string | undefined, number[]>()
  let cursor: string | undefined
  do {
    const page = await broker.list({ queue: AFTER, status: 'waiting', limit: 200, cursor })
    for (const { followUpOf, input } of page.tasks) {
      found.set(followUpOf, [...(found.get(followUpOf) ?? []), (input as { n: number }).n])
    }
    cursor = page.next
  } while (cursor !== undefined)
  for (const [i, { id, status, model }] of results.entries()) {
    expect(status).toBe(plans[i]?.status)
    expect((found.get(id) ?? []).toSorted((a, b) => a - b)).toEqual(model)
  }
}

export function randomFollowUps(open: OpenBackend): void {
  it('the tasks that follow an end are exactly those that the model releases', async () => {
    const plans = fc.array(plan, { minLength: 10, maxLength: 30 })
    const property = fc.asyncProperty(plans, (given) => runPlans(open, given))
    await fc.assert(property, { numRuns: amount({ small: 2, full: 60 }), endOnFailure: true })
  }, 120_000)
}
