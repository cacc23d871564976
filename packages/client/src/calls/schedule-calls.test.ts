// Tests the client's calls that list schedules, against an HTTP server that records its requests.
import { expect, test } from 'vitest'
import { api } from '../server.fixture.ts'

const AT = '2026-01-01T00:00:00.000Z'
const named = (name: string) => ({
  ...{ name, task: 'report.create', queue: 'cpu', status: 'active', createdAt: AT },
  ...{ nextTicks: [AT], waiting: [], runs: 0, skipped: 0, trouble: [] },
})

test('list follows the pages of the schedules', async () => {
  const { client, seen } = await api([
    [200, { schedules: [named('a'), named('b')], next: 'c&1' }],
    [200, { schedules: [named('c')] }],
  ])
  const names: string[] = []
  for await (const { name } of client.schedules.list({ next: 3, trouble: true, pageSize: 2 })) names.push(name)
  expect(names).toEqual(['a', 'b', 'c'])
  const first = '/v1/schedules?next=3&trouble=true&limit=2'
  expect(seen.map(({ url }) => url)).toEqual([first, `${first}&cursor=c%261`])
})

test('list requests only the pages that are read, and without options has no query', async () => {
  const { client, seen } = await api([[200, { schedules: [named('a')], next: 'more' }]])
  for await (const { name } of client.schedules.list()) if (name === 'a') break
  expect(seen.map(({ url }) => url)).toEqual(['/v1/schedules'])
})
