// Tests `bullpen doctor` against a fake API: its requests, its output and its exit codes.
import { PassThrough } from 'node:stream'
import type { Orphan } from '@bullpen/contract'
import { describe, expect, test } from 'vitest'
import { run } from '../../capture.fixture.ts'
import { type Answer, fakeApi } from '../../fake-api.fixture.ts'

const FIND = 'GET /v1/orphans'
const DELETE = 'POST /v1/orphans/delete'
const LOCK: Orphan = {
  key: '{n.cpu}:cpu:cpu-1:lock',
  reason: 'no_owner',
  queue: 'cpu',
  kind: '<task>:lock',
  owner: 'task',
  certain: true,
}
const ENTRY: Orphan = {
  key: '{n.cpu}:cpu:wait',
  entry: 'cpu-1',
  reason: 'no_owner',
  queue: 'cpu',
  kind: 'wait',
  owner: 'queue',
  certain: true,
}
const UNKNOWN: Orphan = { key: '{n}:x', reason: 'unknown_key', certain: false }
const queueKeys = (keys: number): Orphan => ({
  key: '{n.old}:old:wait',
  reason: 'unknown_queue',
  queue: 'old',
  keys,
  certain: false,
})

const page = (orphans: readonly Orphan[], next?: string): Answer => [
  200,
  { orphans, examined: 10, ...(next && { next }) },
]
const LOCK_LINE = 'no_owner       {n.cpu}:cpu:cpu-1:lock  (<task>:lock, owner: task)\n'
const ENTRY_LINE = 'no_owner       {n.cpu}:cpu:wait  cpu-1  (wait, owner: queue)\n'
const BOTH = '2 orphans among 10 keys and entries: 2 without an owner, which --delete deletes\n'

describe('doctor --orphans', () => {
  test('ends with exit code 0 if there are none', async () => {
    await using api = await fakeApi({ [FIND]: page([]) })
    expect(await run(api, ['doctor', '--orphans'])).toEqual({
      code: 0,
      out: 'no orphans: each of 10 keys and entries has an owner\n',
      err: '',
    })
  })

  test('lists each orphan once, counts the keys of an unknown queue together, and ends with exit code 1', async () => {
    await using api = await fakeApi({
      [FIND]: page([LOCK, ENTRY, queueKeys(2)], 'more'),
      'GET /v1/orphans?cursor=more': page([LOCK, UNKNOWN, queueKeys(3)]),
    })
    const { code, out, err } = await run(api, ['doctor', '--orphans'])
    expect(code).toBe(1)
    expect(out).toBe(
      `${LOCK_LINE}${ENTRY_LINE}unknown_queue  queue old, 5 keys such as {n.old}:old:wait\nunknown_key    {n}:x\n4 orphans among 20 keys and entries: 2 without an owner, which --delete deletes\n`,
    )
    expect(err).toBe('')
    expect(api.seen.map(({ request }) => request)).toEqual([FIND, 'GET /v1/orphans?cursor=more'])
  })

  test('with --json prints each orphan and the totals as lines of JSON', async () => {
    await using api = await fakeApi({ [FIND]: page([LOCK, UNKNOWN]) })
    const { code, out, err } = await run(api, ['doctor', '--orphans', '--json'])
    expect({ code, err }).toEqual({ code: 1, err: '' })
    expect(
      out
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line)),
    ).toEqual([LOCK, UNKNOWN, { examined: 10, orphans: 2, certain: 1 }])
  })

  test('with --delete --yes deletes those without an owner, on behalf of the user', async () => {
    await using api = await fakeApi({
      [FIND]: page([LOCK, ENTRY]),
      [DELETE]: [200, { deleted: [{ key: LOCK.key }, { key: ENTRY.key, entry: 'cpu-1' }], kept: [] }],
    })
    const { code, out } = await run(api, ['doctor', '--orphans', '--delete', '--yes'])
    expect({ code, out }).toEqual({ code: 0, out: `${LOCK_LINE}${ENTRY_LINE}${BOTH}deleted 2 of 2 orphans\n` })
    expect(api.seen[1]?.body).toEqual({ orphans: [{ key: LOCK.key }, { key: ENTRY.key, entry: 'cpu-1' }], by: 'ann' })
  })

  test('with --delete ends with exit code 1 if anything is kept', async () => {
    await using api = await fakeApi({
      [FIND]: page([LOCK, ENTRY]),
      [DELETE]: [200, { deleted: [{ key: LOCK.key }], kept: [{ key: ENTRY.key, entry: 'cpu-1' }] }],
    })
    const { code, out } = await run(api, ['doctor', '--orphans', '--delete', '--yes'])
    expect(code).toBe(1)
    expect(out).toContain(
      'deleted 1 of 2 orphans\nkept, because it has an owner or does not exist any more: {n.cpu}:cpu:wait  cpu-1\n',
    )
  })

  test.each([
    ['n', 1, []],
    ['y', 0, [DELETE]],
  ] as const)('with --delete asks at a terminal, and the answer %j is obeyed', async (answer, code, sent) => {
    await using api = await fakeApi({
      [FIND]: page([LOCK]),
      [DELETE]: [200, { deleted: [{ key: LOCK.key }], kept: [] }],
    })
    const stdin = Object.assign(new PassThrough(), { isTTY: true })
    stdin.end(`${answer}\n`)
    const ended = await run(api, ['doctor', '--orphans', '--delete'], { stdin })
    expect(ended.err).toContain('Delete 1 orphan without an owner? [y/N]')
    expect(ended.code).toBe(code)
    expect(api.seen.map(({ request }) => request)).toEqual([FIND, ...sent])
  })

  test('with --delete sends nothing more if no orphan can be deleted', async () => {
    await using api = await fakeApi({ [FIND]: page([UNKNOWN]) })
    expect(await run(api, ['doctor', '--orphans', '--delete', '--yes'])).toMatchObject({ code: 1 })
    expect(api.seen).toHaveLength(1)
  })
})

test.each([
  [['doctor', '--orphans', '--yes'], '--yes requires --delete'],
  [['doctor', '--orphans', '--delete'], 'add --yes to confirm'],
])('the arguments %j are refused before anything is sent', async (args, message) => {
  await using api = await fakeApi()
  const { code, err } = await run(api, args)
  expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining(message) })
  expect(api.seen).toEqual([])
})
