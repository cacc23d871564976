// Every Lua script is a file of its own, under the name of that file, and runs through script.ts. A .lua file is checked by
// scripts/lua.test.mjs.
import { globSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { expect, it } from 'vitest'

const ROOT = join(import.meta.dirname, '..')

const sources = globSync('**/*.ts', { cwd: ROOT })
  .filter((path) => !/\.(test|fixture)\.ts$/.test(path))
  .map((path) => ({ path, text: readFileSync(join(ROOT, path), 'utf8') }))

const pathsWith = (pattern: RegExp): string[] => sources.flatMap(({ path, text }) => (pattern.test(text) ? [path] : []))

it('no source but script.ts and the backend for BullMQ’s own scripts defines a command, and only script.ts sends EVAL', () => {
  expect(pathsWith(/\.defineCommand\(/).toSorted()).toEqual(['internals/composition/backend.ts', 'scripts/script.ts'])
  expect(pathsWith(/\.(eval|evalsha|eval_ro|evalsha_ro|fcall)\(/)).toEqual(['scripts/script.ts'])
})

it('no TypeScript contains Lua outside scripts/, internals/ and the module that is written from the .lua files', () => {
  expect(pathsWith(/redis\.call\('/).filter((path) => !/^(scripts|internals)\//.test(path))).toEqual([
    'store/scripts.ts',
  ])
})

it('a file defines one script, under its own name', () => {
  const defined = sources.filter(({ text }) => /= defineScript\(/.test(text))
  for (const { path, text } of defined) {
    const names = [...text.matchAll(/= defineScript\(\{\s*name: '([a-z-]+)'/g)].map(([, name]) => name)
    expect({ path, names }).toEqual({ path, names: [basename(path, '.ts')] })
  }
  expect(defined.length).toBeGreaterThan(0)
})

it('the comment of a script names the keys that it is sent', () => {
  const undocumented = sources.filter(({ text }) => {
    const [, comment] = /((?:\/\*\*(?:(?!\*\/)[\s\S])*\*\/\n)?)export const \w+ = defineScript\(/.exec(text) ?? []
    return comment !== undefined && !/keys: \[\]/.test(text) && !comment.includes('- KEYS: ')
  })
  expect(undocumented.map(({ path }) => path)).toEqual([])
})
