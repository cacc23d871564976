// Tests bullpen groups against the real API and a real Redis.
import { randomUUID } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createApi } from '@bullpen/api'
import { defineCatalogue, defineTask } from '@bullpen/contract'
import { taskViewSchema } from '@bullpen/contract/internal'
import { expect, inject, onTestFinished, test } from 'vitest'
import { run } from '../../capture.fixture.ts'
import { FAKE_KEY } from '../../fake-api.fixture.ts'

/** Built from schemas of the contract, because the CLI does not depend on zod. */
const count = defineTask({ name: 'task.count', queue: 'cpu', input: taskViewSchema.pick({ fencingToken: true }) })
const line = (n: unknown) => `${JSON.stringify({ task: 'task.count', input: { fencingToken: n } })}\n`

async function startApi() {
  const namespace = `t-${randomUUID().slice(0, 8)}`
  const config = { redisUrl: inject('redisUrl'), keys: [FAKE_KEY], port: 0, metricsPort: 0, namespace }
  const silent = { debug() {}, info() {}, warn() {}, error() {} }
  const api = await createApi({ catalogue: defineCatalogue(count), config, log: silent })
  onTestFinished(() => api.close())
  const { url } = await api.listen()
  return (...args: string[]) => run({ url }, ['groups', ...args])
}

async function fileOf(...lines: readonly string[]): Promise<string> {
  const file = join(tmpdir(), `groups-${randomUUID()}.ndjson`)
  await writeFile(file, lines.join(''))
  return file
}

test('groups are created, listed, shown, sealed and cancelled, and their members are added and printed', async () => {
  const groups = await startApi()
  expect(await groups()).toMatchObject({ code: 0, out: '', err: 'every group has ended\n' })
  const created = await groups(
    'create',
    '--on-error',
    'cancel',
    '--bulk',
    await fileOf(line(1), line(2)),
    '--open',
    '--json',
  )
  const { id, count: members } = JSON.parse(created.out)
  expect(members).toBe(2)
  expect((await groups('list')).out).toMatch(/^id +state .*\ngroup-\w{26} +open +0 of 2 .* cpu\n$/)
  expect((await groups('add', id, '--bulk', await fileOf(line(3)), '--seal')).out).toBe(
    `${id}  1 member added, from number 2\n`,
  )
  expect((await groups('show', id)).out).toMatch(
    / {2}sealed\nmembers +3 members, 0 ended\nqueues +cpu\non error +cancel\n/,
  )
  const results = await groups('results', id, '--from', '1', '--limit', '1')
  expect(results.out).toMatch(/^ +1 {2}cpu-\w{26} {2}waiting\n$/)
  const cancelled = await groups('cancel', id, '--by', 'ann', '--wait', '15s')
  expect(cancelled).toMatchObject({ code: 0 })
  expect(cancelled.out).toMatch(/ {2}cancelled\nmembers +3 members, 3 ended: 3 cancelled\n/)
  expect(cancelled.out).toMatch(/cancelled +.*, cancelled, by ann \(key/)
})

test('a wait that ends before the group exits with 1, and an empty group that is sealed completes', async () => {
  const groups = await startApi()
  const { id } = JSON.parse((await groups('create', '--json')).out)
  expect(await groups('show', id, '--wait', '100ms')).toMatchObject({ code: 1 })
  expect(await groups('seal', id, '--wait', '5s')).toMatchObject({ code: 0 })
})

test('a file with a line that is not a task adds nothing', async () => {
  const groups = await startApi()
  const bad = await groups('create', '--bulk', await fileOf(line(1), '{"input":1}\n'))
  expect(bad).toMatchObject({ code: 2 })
  expect(bad.err).toContain('line 2: expected a JSON object')
  expect((await groups()).err).toBe('every group has ended\n')
  const empty = await groups('create', '--bulk', await fileOf())
  expect(empty.err).toContain('contains no tasks')
})

test('wrong arguments are explained', async () => {
  const groups = await startApi()
  expect((await groups('show')).err).toContain('expected bullpen groups show ID')
  expect((await groups('list', 'x')).err).toContain("unexpected argument 'x'; expected bullpen groups list")
  expect((await groups('seal', 'x', '--bulk', 'y')).err).toContain("'bullpen groups seal' does not accept --bulk")
  expect(await groups('show', 'x')).toMatchObject({ code: 3 })
})

test('a rejected task is named by its line, and the command says what has become of the group', async () => {
  const groups = await startApi()
  const first = await groups('create', '--bulk', await fileOf(line(1), '\n', line('x')))
  expect(first).toMatchObject({ code: 3 })
  expect(first.err).toBe('bullpen: invalid_input: line 3: /input/fencingToken: expected a number, got a string\n')
  expect((await groups()).err).toBe('every group has ended\n')
  const some = Array.from({ length: 1_000 }, (_, n) => line(n + 1))
  const later = await groups('create', '--bulk', await fileOf(...some, line(1), line('x')))
  expect(later).toMatchObject({ code: 3 })
  expect(later.err).toContain('line 1002: /input/fencingToken: expected a number, got a string')
  const [, id] = /^(group-\w{26}) has 1000 members and is not sealed\nadd the other tasks with/m.exec(later.err) ?? []
  expect(await groups('cancel', id ?? '', '--wait', '15s')).toMatchObject({ code: 0 })
})
