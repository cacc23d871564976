// Tests bullpen doctor, which checks the installation.
import type { Diagnosis } from '@bullpen/contract'
import { DIAGNOSIS_CHECKS } from '@bullpen/contract/internal'
import { expect, test } from 'vitest'
import { run, terminal } from '../../capture.fixture.ts'
import { fakeApi, problem } from '../../fake-api.fixture.ts'

const PATH = 'GET /v1/diagnosis'
const HEALTHY: Diagnosis = {
  ...{ now: '2026-01-01T00:00:00.000Z', findings: [] },
  ...{ passed: ['clocks', 'workers'], skipped: [] },
}
const ILL: Diagnosis = {
  ...HEALTHY,
  findings: [
    {
      ...{ check: 'redis_eviction', severity: 'error', node: 'a:7001' },
      problem: 'Redis has maxmemory-policy allkeys-lru; expected noeviction',
      reason: 'when its memory is full, Redis deletes tasks',
      advice: 'set maxmemory-policy noeviction',
    },
    {
      ...{ check: 'paused_queues', severity: 'warning', queue: 'cpu', problem: 'cpu is paused, with 1 waiting task' },
      ...{ reason: 'tasks do not start', advice: "run 'bullpen resume --queue cpu'" },
    },
  ],
  passed: ['clocks'],
  skipped: ['redis_encoding', 'redis_memory'],
}

test('doctor ends with exit code 0 if nothing was found', async () => {
  await using api = await fakeApi({ [PATH]: [200, HEALTHY] })
  expect(await run(api, ['doctor'])).toEqual({ code: 0, out: 'nothing found; 2 checks passed\n', err: '' })
})

test('doctor prints what is wrong, why it matters and what to do, and ends with exit code 1', async () => {
  await using api = await fakeApi({ [PATH]: [200, ILL] })
  const { code, out, err } = await run(api, ['doctor'])
  expect({ code, err }).toEqual({ code: 1, err: '' })
  expect(out.split('\n')).toEqual([
    'ERROR  redis_eviction  Redis has maxmemory-policy allkeys-lru; expected noeviction (node a:7001)',
    '  why  when its memory is full, Redis deletes tasks',
    '  do   set maxmemory-policy noeviction',
    '',
    'WARNING  paused_queues  cpu is paused, with 1 waiting task',
    '  why  tasks do not start',
    "  do   run 'bullpen resume --queue cpu'",
    '',
    '2 findings: 1 error, 1 warning; 1 check passed; 2 skipped because Redis does not permit their commands (--json names them)',
    '',
  ])
})

test('doctor counts the checks that it skips, however many these are, and names the finding that is the cause', async () => {
  const [check, ...skipped] = DIAGNOSIS_CHECKS
  const finding = {
    check,
    severity: 'error',
    problem: 'Redis is not reachable',
    reason: 'no task runs',
    advice: 'start it',
  } as const
  const diagnosis: Diagnosis = { ...HEALTHY, findings: [finding], passed: [], skipped }
  await using api = await fakeApi({ [PATH]: [200, diagnosis] })
  const { out } = await run(api, ['doctor'])
  expect(out.trimEnd().split('\n').at(-1)).toBe(
    `1 finding: 1 error, 0 warnings; 0 checks passed; ${skipped.length} skipped because of redis_connection (--json names them)`,
  )
})

test('doctor wraps lines on a narrow terminal', async () => {
  await using api = await fakeApi({ [PATH]: [200, ILL] })
  const stdout = Object.assign(terminal(50), { getColorDepth: () => 1 })
  const { out } = await run(api, ['doctor'], { stdout })
  expect(out.split('\n').slice(0, 3)).toEqual([
    'ERROR  redis_eviction',
    '    Redis has maxmemory-policy allkeys-lru;',
    '    expected noeviction (node a:7001)',
  ])
})

test('doctor --json prints the diagnosis, and ends with the same exit codes', async () => {
  await using api = await fakeApi({ [PATH]: [200, ILL] })
  const { code, out } = await run(api, ['doctor', '--json'])
  expect({ code, diagnosis: JSON.parse(out) }).toEqual({ code: 1, diagnosis: ILL })
})

test('doctor ends with exit code 3 if the API rejects the request, because nothing was examined', async () => {
  await using api = await fakeApi({ [PATH]: problem('internal_error', 500) })
  expect(await run(api, ['doctor'])).toMatchObject({ code: 3, out: '' })
})

test.each(['--delete', '--yes'])('doctor refuses %s without --orphans', async (option) => {
  await using api = await fakeApi()
  const { code, err } = await run(api, ['doctor', option])
  expect({ code, err }).toEqual({ code: 2, err: expect.stringContaining(`${option} requires --orphans`) })
  expect(api.seen).toEqual([])
})
