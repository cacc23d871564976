// Tests that the waits of a client survive an API process that is killed and started again on the same port.
import { type Client, createClient, http } from '@bullpen/client'
import { eventually } from '@bullpen/testkit'
import { expect, inject, it, onTestFinished } from 'vitest'
import { work } from '../programs/catalogue.ts'
import { startApi } from './drill-api.ts'
import { newNamespace } from './drill-setup.ts'

const KILLS = 2

async function lastOf<T>(events: AsyncIterable<T>): Promise<T | undefined> {
  let last: T | undefined
  for await (const event of events) last = event
  return last
}

const WAITS: Readonly<Record<string, (client: Client, task: string, group: string) => Promise<unknown>>> = {
  'waitUntilFinished of a task': (client, task) => client.waitUntilFinished(task),
  'the events of a task': (client, task) => lastOf(client.taskEvents(task)),
  'waitUntilEnded of a group': (client, _, group) => client.group(group).waitUntilEnded(),
  'the events of a group': (client, _, group) => lastOf(client.group(group).events()),
}

it('every wait survives an API process that is killed twice and started again on the same port', async () => {
  const api = await startApi({ redisUrl: inject('redisUrl'), namespace: newNamespace() })
  onTestFinished(() => api.close())
  const caller = api.client()
  const { id: task } = await caller.enqueue(work, { ms: 0, listens: false }, { delay: '1h' })
  const { id: group } = await caller.createGroup()
  await caller
    .group(group)
    .addNamed([{ task: work.name, input: { ms: 0, listens: false }, delay: '1h' }], { seal: true })

  const waits = Object.values(WAITS).map((wait) => {
    const seen = { requests: 0, responses: 0 }
    const counting: typeof fetch = async (...request) => {
      seen.requests++
      const response = await fetch(...request)
      seen.responses++
      return response
    }
    const client = createClient({ transport: http(api.url, api.key, { fetch: counting }), retryFor: '2m' })
    return { seen, ended: wait(client, task, group) }
  })
  let settled = 0
  for (const { ended } of waits) void Promise.allSettled([ended]).then(() => settled++)

  await eventually(() => waits.every(({ seen }) => seen.requests > 0))
  for (let kills = 0; kills < KILLS; kills++) {
    const before = waits.map(({ seen }) => seen.responses)
    await api.replace()
    // The new process has responded to each wait. A wait that the death had not broken would get no response yet.
    await eventually(() => waits.every(({ seen }, at) => seen.responses > (before[at] ?? 0)))
  }
  expect(settled).toBe(0)
  await caller.cancel(task)
  await caller.group(group).cancel()
  const ends = await Promise.all(waits.map(({ ended }) => ended))
  expect(ends).toMatchObject([
    { id: task, status: 'cancelled' },
    { type: 'ended', status: 'cancelled' },
    { id: group, state: 'ended', statuses: { cancelled: 1 } },
    { type: 'group_ended' },
  ])
})
