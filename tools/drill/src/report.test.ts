// Tests that a report names every figure that missed its limit.
import { describe, expect, it } from 'vitest'
import type { Figures } from './figures/figures.ts'
import { asJson, asText, reportOf } from './report.ts'

const run = {
  drill: 'kill',
  scale: 'small',
  seed: 7,
  target: { text: 'recovery p99 <= 10 s', atMost: { recoveryP99Ms: 10_000, restarted: 30 } },
  baseline: { recoveryP99Ms: 60_000 },
} as const

const good: Figures = {
  accepted: 400,
  lost: 0,
  duplicated: 0,
  eventsMissed: 0,
  failed: 0,
  effectsRepeated: 1,
  restarted: 30,
  attemptsUsed: 0,
  interrupted: 29,
  recoveryP99Ms: 10_000,
  exitSlowestMs: undefined,
  exitsNotZero: 0,
  orphans: 0,
}

describe('a report', () => {
  it('is ok if every figure is at its limit', () => {
    expect(reportOf(run, good)).toMatchObject({ ok: true, missed: [] })
  })

  it.each([
    [{ lost: 1 }, 'lost 1, limit 0'],
    [{ duplicated: 1 }, 'duplicated 1, limit 0'],
    [{ eventsMissed: 1 }, 'eventsMissed 1, limit 0'],
    [{ failed: 1 }, 'failed 1, limit 0'],
    [{ orphans: 1 }, 'orphans 1, limit 0'],
    [{ orphans: undefined }, 'orphans not measured, limit 0'],
    [{ restarted: 31 }, 'restarted 31, limit 30'],
    [{ recoveryP99Ms: 10_001 }, 'recoveryP99Ms 10001, limit 10000'],
    [{ recoveryP99Ms: Number.POSITIVE_INFINITY }, 'recoveryP99Ms Infinity, limit 10000'],
    [{ recoveryP99Ms: undefined }, 'recoveryP99Ms not measured, limit 10000'],
    [{ miscounted: 1 }, 'miscounted 1, limit 0'],
    [{ exitsNotZero: 1 }, 'exitsNotZero 1, limit 0'],
    [{ unaccounted: 1 }, 'unaccounted 1, limit 0'],
    [{ faultsWithoutEffect: 1 }, 'faultsWithoutEffect 1, limit 0'],
    [{ accepted: 0 }, 'no task was accepted'],
  ])('with %j has missed its target', (change, missed) => {
    const report = reportOf(run, { ...good, ...change })
    expect(report).toMatchObject({ ok: false, missed: [missed] })
    expect(asText(report)).toContain(`MISSED: ${missed}`)
  })

  it('shows what was measured over time as a list of values', () => {
    expect(asText(reportOf(run, { ...good, memoryKiB: [3, 5, 4], waitingMost: 7 }))).toContain(
      'memoryKiB 3 5 4, waitingMost 7',
    )
  })

  it('shows the figures of other libraries below those of plain BullMQ', () => {
    const others = { groupmq: { waitP99Ms: 7, from: 'groupmq 1.1' } }
    expect(asText(reportOf({ ...run, others }, good))).toMatch(
      /plain BullMQ: .*\n {2}groupmq: waitP99Ms 7, from groupmq 1\.1$/,
    )
  })

  it('is one line of JSON', () => {
    const line = asJson(reportOf(run, good))
    expect(line).not.toContain('\n')
    expect(JSON.parse(line)).toMatchObject({
      drill: 'kill',
      scale: 'small',
      seed: 7,
      accepted: 400,
      lost: 0,
      ok: true,
      target: 'recovery p99 <= 10 s',
      baseline: { recoveryP99Ms: 60_000 },
    })
  })
})
