// Tests bullpen doctor --bullmq: its output, its exit codes and its options.
import type { BullmqExamination } from '@bullpen/bullmq/internal'
import { expect, inject, test } from 'vitest'
import { run } from '../../../capture.fixture.ts'
import { examinationLines } from './examination-text.ts'

const NO_API = { url: 'http://127.0.0.1:1' }
const layout = { now: 0, paint: (_style: string, text: string) => text }

test('an examination is printed with the figures of each queue, and findings name their queue', () => {
  const examination: BullmqExamination = {
    ...{ now: '2026-01-01T00:00:00.000Z', isComplete: true, passed: ['paused'], skipped: ['no_workers'] },
    queues: [
      {
        ...{ prefix: 'shop', queue: 'mail', waiting: 2, prioritized: 1, active: 4, delayed: 5, waitingChildren: 0 },
        ...{ completed: 1_090, failed: 11 },
      },
    ],
    findings: [
      {
        ...{ check: 'overdue_jobs', severity: 'error', prefix: 'shop', queue: 'mail', problem: '5 are late' },
        ...{ reason: 'nobody starts them', advice: 'start workers' },
      },
    ],
  }
  expect(examinationLines(examination, layout)).toEqual([
    'queue      waiting  active  delayed  waiting-children  completed  failed  workers',
    'shop:mail  3        4       5        0                 1090       11      -',
    '',
    'ERROR  overdue_jobs  shop:mail: 5 are late',
    '  why  nobody starts them',
    '  do   start workers',
    '',
    '1 finding: 1 error, 0 warnings; 1 check passed; 1 skipped because Redis does not permit their commands (--json names them)',
  ])
})

test('doctor --bullmq needs no API, and prints JSON with --json', async () => {
  const ended = await run(NO_API, [
    'doctor',
    '--bullmq',
    inject('redisUrl'),
    '--prefix',
    'none',
    '--queue',
    'none',
    '--json',
  ])
  expect(ended).toMatchObject({ code: 1, err: '' })
  expect(JSON.parse(ended.out)).toMatchObject({ isComplete: true, queues: [], skipped: [] })
})

test.each([
  [['--bullmq', 'redis://127.0.0.1:1'], 4, 'redis_unavailable: Redis does not respond'],
  [['--bullmq', 'nonsense'], 2, '--bullmq: invalid Redis URL'],
  [['--bullmq', 'rediss://a?ca=/none.pem'], 2, '--bullmq: the files for TLS with Redis cannot be used'],
  [['--bullmq', 'redis://127.0.0.1:1', '--orphans'], 2, '--orphans cannot be combined with --bullmq'],
  [['--prefix', 'bull'], 2, '--prefix requires --bullmq'],
  [['--queue', 'mail'], 2, '--queue requires --bullmq'],
])('doctor %j ends with exit code %i', async (args, code, message) => {
  expect(await run(NO_API, ['doctor', ...args])).toMatchObject({ code, err: expect.stringContaining(message) })
})
