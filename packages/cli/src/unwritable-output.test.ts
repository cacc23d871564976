// Tests what the program does if its output cannot be written: on a full disk, and in a pipe that its reader has closed.
import { expect, test } from 'vitest'
import { ACCEPTED, fakeApi, ID, problem, runShell, view } from './fake-api.fixture.ts'

const LIST = 'GET /v1/tasks?queue=cpu&status=dead&limit=50'
const API = {
  'POST /v1/tasks': [202, ACCEPTED],
  [`GET /v1/tasks/${ID}`]: [200, view()],
  [LIST]: [200, { tasks: [view()] }],
} as const
const FULL = [
  'bullpen: cannot write to standard output: ENOSPC: no space left on device, write',
  'requests that were sent before may have taken effect',
  '',
].join('\n')

const COMMANDS = ['--version', 'help', 'list --help', 'enqueue a.b', `show ${ID}`, 'list --queue cpu --status dead']

test.each(COMMANDS)('%s reports a full disk and exits with 74', async (command) => {
  await using api = await fakeApi(API)
  expect(await runShell(api, `bullpen ${command} >/dev/full`)).toEqual({ code: 74, out: '', err: FULL })
})

test('a full disk is reported as JSON with --json', async () => {
  await using api = await fakeApi(API)
  const { code, err } = await runShell(api, `bullpen show ${ID} --json >/dev/full`)
  const detail = 'cannot write to standard output: ENOSPC: no space left on device, write'
  expect({ code, error: JSON.parse(err) }).toEqual({
    code: 74,
    error: { error: { code: 'unwritable_output', detail } },
  })
})

/** Opens a pipe as descriptor 3. Its only reader has exited before the line runs. */
const withClosedPipe = (line: string): string => `exec 3> >(exec true); wait $!; ${line}`

test.each(COMMANDS)('%s ends without an error if the reader has closed the pipe', async (command) => {
  await using api = await fakeApi(API)
  expect(await runShell(api, withClosedPipe(`bullpen ${command} >&3`))).toEqual({ code: 0, out: '', err: '' })
})

test.each([
  ['full', '2>/dev/full'],
  ['closed', '2>&3'],
])('an error keeps its exit code if standard error is %s', async (_, redirection) => {
  await using api = await fakeApi({ 'POST /v1/tasks': problem('queue_full', 429) })
  const codeOf = async (command: string) =>
    (await runShell(api, withClosedPipe(`bullpen ${command} ${redirection}`))).code
  expect([await codeOf('revive'), await codeOf('enqueue a.b')]).toEqual([2, 3])
})

test('enqueue --bulk says how many tasks it has enqueued if its results cannot be written', async () => {
  const stored = { id: ID, action: 'created', status: 'waiting' }
  await using api = await fakeApi({ 'POST /v1/tasks/bulk': [200, { failed: 0, results: [stored] }] })
  const { code, err } = await runShell(api, 'echo "{}" | bullpen enqueue a.b --bulk - >/dev/full')
  expect({ code, err }).toEqual({ code: 74, err: `${FULL}1 task: 1 enqueued\n` })
})
