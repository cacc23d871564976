// Which test files a run leaves out.
import { globSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { excludedFiles, SYSTEM_TESTS } from './system-tests.mjs'

const root = join(import.meta.dirname, '../..')

it.each(SYSTEM_TESTS)('each file that %s stands for exists', (pattern) => {
  const alternatives = /\{(.*)\}/.exec(pattern)?.[1].split(',').length ?? 1
  expect(globSync(pattern, { cwd: root })).toHaveLength(alternatives)
})

it.each([[[]], [['--watch']], [['--reporter=json']]])(
  'a run with the arguments %j leaves the system tests out',
  (args) => {
    expect(excludedFiles(args)).toEqual(SYSTEM_TESTS)
  },
)

it.each([
  [['--all']],
  [['--full']],
  [['tools/drill']],
  [['--reporter=json', 'docs/tutorial.test.ts']],
  [['-t', 'a task']],
])('a run with the arguments %j leaves no file out', (args) => {
  expect(excludedFiles(args)).toEqual([])
})
