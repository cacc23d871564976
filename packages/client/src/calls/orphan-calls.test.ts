// Tests the client's calls that find and delete orphaned keys, against an HTTP server that records its requests.
import type { Orphan } from '@bullpen/contract'
import { expect, test } from 'vitest'
import { api } from '../server.fixture.ts'

const ORPHAN: Orphan = {
  key: '{n.cpu}:cpu:cpu-1:lock',
  reason: 'no_owner',
  queue: 'cpu',
  kind: '<task>:lock',
  owner: 'task',
  certain: true,
}

test('orphans requests each page of a search, even after an empty one, and reports its progress', async () => {
  const { client, seen } = await api([
    [200, { orphans: [], examined: 100, next: 'a b' }],
    [200, { orphans: [ORPHAN], examined: 20 }],
  ])
  const found: Orphan[] = []
  const progress: number[] = []
  for await (const orphan of client.orphans({ onProgress: (examined) => progress.push(examined) })) found.push(orphan)
  expect(found).toEqual([ORPHAN])
  expect(progress).toEqual([100, 120])
  expect(seen.map(({ url }) => url)).toEqual(['/v1/orphans', '/v1/orphans?cursor=a+b'])
})

test('deleteOrphans names only the keys and the entries, and repeats a lost request', async () => {
  const deleted = { deleted: [{ key: ORPHAN.key }], kept: [{ key: 'k', entry: 'e' }] }
  const { client, seen } = await api(['break', [200, deleted]])
  const entry: Orphan = { key: 'k', entry: 'e', reason: 'no_owner', certain: true }
  expect(await client.deleteOrphans({ orphans: [ORPHAN, entry], by: 'ann' })).toEqual(deleted)
  const body = { orphans: [{ key: ORPHAN.key }, { key: 'k', entry: 'e' }], by: 'ann' }
  expect(seen.map((request) => request.body)).toEqual([body, body])
})
