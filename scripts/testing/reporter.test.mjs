// The reporter, by running vitest on temporary files.
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { run } from '../system/programs.mjs'

const modules = join(import.meta.dirname, '../../node_modules')
let dir
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'bullpen-reporter-'))
  symlinkSync(modules, join(dir, 'node_modules'))
})
afterEach(() => rmSync(dir, { recursive: true, force: true }))

async function runTests(body, ...args) {
  writeFileSync(join(dir, 'a.test.mjs'), `import { it, expect } from 'vitest'\n${body}`)
  const reporters = ['default', join(import.meta.dirname, 'reporter.mjs')].map((name) => `--reporter=${name}`)
  const vitest = join(modules, 'vitest/vitest.mjs')
  const env = { ...process.env, NO_COLOR: '1' }
  const { code, stdout } = await run(process.execPath, [vitest, 'run', ...reporters, ...args], { cwd: dir, env })
  return { code, stdout, last: stdout.trimEnd().split('\n').at(-1) }
}

it('the totals count passed tests, and the slowest tests are listed', async () => {
  const { code, stdout, last } = await runTests(
    "it('a', () => {})\nit('b', () => new Promise((r) => setTimeout(r, 1_000)))",
  )
  expect({ code, last }).toEqual({ code: 0, last: '2 passed, 0 failed' })
  expect(stdout).toMatch(/The slowest 2 tests:\n +\d\.\d\d s {2}a\.test\.mjs > b\n +\d\.\d\d s {2}a\.test\.mjs > a\n/)
})

it('skipped and planned tests count as failed and are listed', async () => {
  const { code, stdout, last } = await runTests("it('a', () => {})\nit.skip('later', () => {})\nit.todo('someday')")
  expect({ code, last }).toEqual({ code: 1, last: '1 passed, 2 failed' })
  expect(stdout).toContain('Not run, counted as failed:\n  a.test.mjs > later\n  a.test.mjs > someday\n')
})

it('what the user can do about failures comes before the totals, once', async () => {
  const failing = (error) => `throw Object.assign(new Error(${JSON.stringify(error)}), { name: 'UserError' })`
  const { stdout } = await runTests(`
import { beforeAll, describe } from 'vitest'
it('a', () => { ${failing('A is needed.')} })
it('b', () => { ${failing('A is needed.')} })
describe('c', () => {
  beforeAll(() => { ${failing('B is needed.')} })
  it('d', () => {})
})`)
  expect(stdout).toMatch(/B is needed\.\n\nA is needed\.\n\n0 passed, 3 failed\n$/)
})

it('tests that -t did not select are not counted', async () => {
  expect(await runTests("it('aa', () => {})\nit('bb', () => {})", '-t', 'aa')).toMatchObject({
    code: 0,
    last: '1 passed, 0 failed',
  })
})

it.each([
  ['a test fails', "it('a', () => expect(1).toBe(2))\nit('b', () => {})", '1 passed, 1 failed'],
  ['a file cannot be loaded', "throw new Error('broken')", '0 passed, 1 failed'],
  [
    'an error escapes',
    "it('a', () => new Promise((r) => setTimeout(r, 50)))\nsetTimeout(() => { throw new Error('late') })",
    '1 passed, 1 failed',
  ],
])('the run fails if %s', async (_, body, expected) => {
  const { code, last } = await runTests(body)
  expect({ code, last }).toEqual({ code: 1, last: expected })
})
