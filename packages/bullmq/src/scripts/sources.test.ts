// Every script of Bullpen's own is a .lua file, and every script runs through script.ts. scripts/lua.test.mjs checks the .lua files.
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const ROOT = join(import.meta.dirname, '..')

const sources = globSync('**/*.ts', { cwd: ROOT })
  .filter((path) => !/\.(test|fixture)\.ts$/.test(path))
  .map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }))

const pathsWith = (pattern: RegExp): string[] => sources.flatMap(({ path, text }) => (pattern.test(text) ? [path] : []))

it('no source but script.ts defines a command, and none but script.ts and the adds that wait for a replica sends EVAL', () => {
  expect(pathsWith(/\.defineCommand\(/)).toEqual(['scripts/script.ts'])
  expect(pathsWith(/\.(eval|evalsha|eval_ro|evalsha_ro|fcall)\(/)).toEqual([
    'store/replicated-adds.ts',
    'scripts/script.ts',
  ])
})

it('no TypeScript contains Lua outside internals/, which change BullMQ’s scripts, and the module that is written from the .lua files', () => {
  expect(pathsWith(/\bcall\('/).filter((path) => !path.startsWith('internals/'))).toEqual(['store/scripts.ts'])
})
