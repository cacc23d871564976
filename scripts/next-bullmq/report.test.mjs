// The report on another version of BullMQ.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { changedLines, isCompatible, reportOf } from './report.mjs'

const same = {
  installed: '6.7.0',
  tested: '6.7.0',
  isNewest: true,
  totals: { script: 50, arguments: 32, method: 30 },
  differences: [],
  typeErrors: [],
  tests: { passed: 120, failures: [] },
}

describe('the report', () => {
  it('says that nothing has changed', () => {
    expect(reportOf(same)).toBe(`BullMQ 6.7.0, the newest of the registry, which is the installed version

Script texts: 0 of 50 differ

Positions of keys and arguments: 0 of 32 differ

Methods: 0 of 30 differ

Types: 0 errors

Tests (pins and conformance suite): 120 passed, 0 failed

Nothing that Bullpen relies on has changed.`)
  })

  it('shows each difference below its kind, with the beginning of its diff, and each failure', () => {
    const differences = [
      { kind: 'script', message: 'the text of drain has changed', diff: Array.from({ length: 14 }, (_, i) => `-${i}`) },
      { kind: 'method', message: 'Worker.run no longer exists', diff: [] },
    ]
    const failures = [{ name: 'a.test.ts > a worker runs', message: 'expected 1\nto be 2' }]
    const outcome = { ...same, tested: '6.8.0', isNewest: false, differences, typeErrors: ['a.ts(1,1): error'] }
    expect(
      reportOf({ ...outcome, tests: { passed: 119, failures } }),
    ).toBe(`BullMQ 6.8.0; the installed version is 6.7.0
In a diff, - is BullMQ 6.7.0 and + is BullMQ 6.8.0.

Script texts: 1 of 50 differ
  the text of drain has changed
${Array.from({ length: 12 }, (_, i) => `    -${i}`).join('\n')}
    … 2 more lines

Positions of keys and arguments: 0 of 32 differ

Methods: 1 of 30 differ
  Worker.run no longer exists

Types: 1 error
  a.ts(1,1): error

Tests (pins and conformance suite): 119 passed, 1 failed
  a.test.ts > a worker runs
    expected 1
    to be 2

Bullpen does not work with BullMQ 6.8.0. To see what fails without it: npm run test:next -- --version 6.7.0`)
  })

  it('asks to look at the differences if types and tests pass', () => {
    const differences = [{ kind: 'script', message: 'the text of drain has changed', diff: [] }]
    expect(reportOf({ ...same, tested: '6.8.0', differences })).toMatch(
      /The types and tests pass with BullMQ 6\.8\.0\. Look at each difference before you upgrade\.$/,
    )
  })
})

it.each([
  [true, {}],
  [false, { typeErrors: ['error'] }],
  [false, { tests: { passed: 1, failures: [{ name: 'a', message: '' }] } }],
  [false, { tests: { passed: 0, failures: [] } }],
])('compatible: %s, with %j', (compatible, change) => {
  expect(isCompatible({ ...same, ...change })).toBe(compatible)
})

describe('the changed lines of a script', () => {
  const changed = (before, after) => {
    const dir = mkdtempSync(join(tmpdir(), 'bullpen-diff-'))
    onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
    return changedLines(before, after, dir)
  }

  it('leave out context and comments', () => {
    const before = '--[[\n  Old words\n]]\nlocal a = 1\n-- why\nlocal b = 2\nreturn a'
    const after = '--[[\n  New words\n]]\nlocal a = 1\n-- why not\nlocal b = 3\nreturn a'
    expect(changed(before, after)).toEqual(['-local b = 2', '+local b = 3'])
  })

  it('say if only comments differ, and are none if nothing does', () => {
    expect(changed('-- one\nreturn 1', '-- two\nreturn 1')).toEqual(['only comments or spaces'])
    expect(changed('return 1', 'return 1')).toEqual([])
  })
})
