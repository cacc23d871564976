// Tests the client's call that checks the installation.
import type { Diagnosis } from '@bullpen/contract'
import { expect, test } from 'vitest'
import { api } from '../server.fixture.ts'

const finding = { check: 'clocks', severity: 'warning', problem: 'p', reason: 'r', advice: 'a' } as const
const DIAGNOSIS: Diagnosis = {
  ...{ now: '2026-01-01T00:00:00.000Z', findings: [finding] },
  ...{ passed: ['workers'], skipped: ['redis_memory'] },
}

test('diagnose returns the findings, and accepts those of checks that this client does not know', async () => {
  const newer = { ...DIAGNOSIS, findings: [{ ...finding, check: 'tls' }], passed: ['moon'] }
  const { client, seen } = await api([
    [200, DIAGNOSIS],
    [200, newer],
  ])
  expect(await client.diagnose()).toEqual(DIAGNOSIS)
  expect(await client.diagnose()).toEqual(newer)
  expect(seen.map(({ method, url }) => `${method} ${url}`)).toEqual(Array(2).fill('GET /v1/diagnosis'))
})

test.each([{}, { ...DIAGNOSIS, findings: [{ check: 'clocks' }] }])('%j is not a diagnosis', async (body) => {
  const { client } = await api([[200, body]])
  await expect(client.diagnose()).rejects.toMatchObject({ code: 'unexpected_response' })
})
