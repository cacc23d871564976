// Runs groupmq's part of the drill `fairness` at small scale.
import { expect, it } from 'vitest'
import { measureGroupmq } from './groupmq.ts'
import { PLANS } from './plan.ts'

it("groupmq's waits are measured", async () => {
  const plan = { ...PLANS.small, backlog: 100, tasksPerKey: 2, taskMs: 1 }
  const { waitP50Ms, waitP99Ms, noisyStarts } = await measureGroupmq(plan)
  expect(waitP99Ms).toBeGreaterThanOrEqual(Number(waitP50Ms))
  expect(noisyStarts).toBeGreaterThan(0)
})
