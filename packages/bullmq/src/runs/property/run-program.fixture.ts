// Runs random pipelines on several worker processes while they are disturbed, and checks what they return and what they leave.
import { randomBytes, randomUUID } from 'node:crypto'
import type { RunId } from '@bullpen/contract'
import { createRunId, ID_RANDOM_BYTES } from '@bullpen/contract/internal'
import { planRun, type Run, type Runs } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { expect } from 'vitest'
import { openPatientBroker } from '../../broker/patient-broker.fixture.ts'
import { silent } from '../../setup.fixture.ts'
import { keepHurrying } from '../hurried-leader.fixture.ts'
import { repeated } from '../repeated.fixture.ts'
import { openFleet } from './fleet.fixture.ts'
import type { Item } from './items.fixture.ts'
import { createLedger, type Ledger } from './ledger.fixture.ts'
import { expectOutcome } from './outcome.fixture.ts'
import { pipelineOf, QUEUES } from './pipeline.fixture.ts'
import type { PlannedRun, Program } from './program.fixture.ts'
import { expectNoTasks, expectOnlyRecords, keysLike } from './remains.fixture.ts'

const KEEP = { keep: '60s', keepMs: 60_000 } as const
/** No run takes this long, in ms. */
const LONG_ENOUGH_MS = 60_000

interface StartedRun {
  readonly number: number
  readonly id: RunId
  readonly planned: PlannedRun
  readonly ledger: Ledger
}

export async function runProgram(program: Program, redisUrl: string): Promise<void> {
  const namespace = `t-${randomUUID().slice(0, 12)}`
  const redis = new Redis(redisUrl)
  const common = { redis, namespace, queues: QUEUES }
  const options = { redisUrl, namespace, queues: QUEUES, sizeLimit: 10_000, log: silent, leads: false }
  const broker = openPatientBroker({ ...options, commandTimeoutMs: LONG_ENOUGH_MS })
  const started = program.runs.map((planned, number): StartedRun => {
    const id = createRunId(Date.now(), randomBytes(ID_RANDOM_BYTES))
    return { number, id, planned, ledger: createLedger(planned.stages.map(({ concurrency }) => concurrency)) }
  })
  const ids = started.map(({ id }) => id)
  const fleet = await openFleet(program, { redisUrl, redis, namespace, runs: started })
  const over = new AbortController()
  let stopHurrying = (): void => {}
  const hurry = (): void => {
    stopHurrying()
    stopHurrying = keepHurrying({ ...common, ids })
  }
  await eventually(() => broker.ping().then(() => true))
  const disturbed = fleet.disturb(hurry, over.signal)
  try {
    const ended = started.map(async (run) => {
      const { settings } = await runOne(broker.runs, run)
      await expectNoTasks(common, settings)
    })
    const outcomes = await Promise.allSettled(ended)
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason
    over.abort()
    await disturbed
    hurry()
    await expectOnlyRecords(common, { broker, ids, keepMs: KEEP.keepMs })
  } finally {
    over.abort()
    await disturbed
    stopHurrying()
    await fleet.close()
    await broker.close()
    for (const key of await keysLike(redis, `{${namespace}*`)) await redis.unlink(key)
    redis.disconnect()
  }
}

/** Starts a run, cancels it if that is planned, checks how it ends, and returns it. */
async function runOne(runs: Runs, { number, id, planned, ledger }: StartedRun): Promise<Run> {
  const origin = { id, by: 'ann', random: randomBytes(ID_RANDOM_BYTES), now: Date.now(), correlationId: undefined }
  const plan = planRun(pipelineOf(planned), { ...origin, input: { run: number }, keep: KEEP.keep })
  await repeated(() => runs.start(plan))
  const ended = end(runs, id)
  const { cancelAfter } = planned
  let wasCancelled = false
  if (cancelAfter !== undefined) {
    await Promise.race([ended, ledger.further(cancelAfter)])
    wasCancelled = true
    await repeated(() => runs.cancel(id, 'ann'))
  }
  const run = await ended
  const output = run.ended?.result === 'completed' ? await repeated(() => runs.output(id)) : undefined
  const errors = await repeated(() => runs.errors(id, 0, 1_000))
  const { calls, violations } = ledger
  expectOutcome(planned, { number, run, output: output as readonly Item[] | undefined, errors, calls, wasCancelled })
  expect(violations).toEqual([])
  return run
}

async function end(runs: Runs, id: RunId): Promise<Run> {
  const run = await repeated(() => runs.waitUntilEnded(id, AbortSignal.timeout(LONG_ENOUGH_MS)))
  if (run?.state !== 'ended') throw new Error(`run ${id} has not ended: ${JSON.stringify(run)}`)
  return run
}
