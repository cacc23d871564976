import { promtool } from '@bullpen/testing'
import { expect, it } from 'vitest'
import { textOf, usedTelemetry } from './used-telemetry.fixture.ts'

it('telemetry publishes metrics in which promtool finds no problem', async () => {
  const { code, output } = await promtool(['check', 'metrics'], await textOf(usedTelemetry()))
  expect({ code, output }).toEqual({ code: 0, output: '' })
})
