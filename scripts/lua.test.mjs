// The Lua files and the module that is written from them.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { expectKnownNames } from './lua/global-names.mjs'
import { readIncludes, readLua } from './lua/lua-file.mjs'
import { typedModule } from './lua/typed-module.mjs'
import { expectedFiles } from './lua.mjs'

/** Writes these files into a folder, and reads the script `main`. */
function read(files) {
  const folder = mkdtempSync(join(tmpdir(), 'lua-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  mkdirSync(join(folder, 'includes'))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, `${name}.lua`), text)
  return readLua(join(folder, 'main.lua'), readIncludes(join(folder, 'includes')))
}

const MAIN = `#!lua flags=allow-oom
-- Counts. This is what
-- it does.
--
-- KEYS  counter, total
-- ARGV  first
-- ARGV  second   the other one
-- ARGV[3...]  more
--
-- Returns \`[count: number,
-- left: string[]]\`: both.
--- @include twice
return { twice(first), second }
`
const TWICE = `-- twice(number) doubles.
--- @include plus
local function twice(number)
  -- A reason.
  return plus(number, number)
end
`
const PLUS = '-- plus(one, other) adds.\nlocal function plus(one, other)\n  return one + other\nend\n'

describe('a Lua file', () => {
  const files = { main: MAIN, 'includes/twice': TWICE, 'includes/plus': PLUS }

  it('declares its keys, arguments and reply in its header', () => {
    expect(read(files)).toMatchObject({
      name: 'main',
      kind: 'frees',
      summary: ['Counts. This is what', 'it does.'],
      keys: ['counter', 'total'],
      args: ['first', 'second'],
      reply: '[count: number, left: string[]]',
    })
  })

  it('is sent with its includes, each once, and without comments', () => {
    const again = MAIN.replace('--- @include twice', '--- @include twice\n--- @include plus')
    const { whole } = read({ ...files, main: again })
    expect(whole.match(/local function plus/g)).toHaveLength(1)
    expect(whole).not.toContain('--')
    expect(whole).toContain('\nlocal counter, total = KEYS[1], KEYS[2]\nlocal first, second = ARGV[1], ARGV[2]\n')
    expect(whole.indexOf('plus(one')).toBeLessThan(whole.indexOf('twice(number)'))
    expect(() => expectKnownNames('main', whole)).not.toThrow()
  })

  it('is sent with an include in each block that asks for it', () => {
    const block = 'do\n  --- @include plus\n  plus(1, 2)\nend\n'
    const one = read({
      ...files,
      main: MAIN.replace('--- @include twice\nreturn { twice(first)', `${block}${block}return { first`),
    })
    expect(one.whole.match(/local function plus/g)).toHaveLength(2)
    expect(() => expectKnownNames('main', one.whole)).not.toThrow()
    const outside = read({ ...files, main: MAIN.replace('--- @include twice', `${block}--- @include twice\n${block}`) })
    expect(outside.whole.match(/local function plus/g)).toHaveLength(2)
    expect(() => expectKnownNames('main', outside.whole)).not.toThrow()
  })

  it('says where the types of its reply are from', () => {
    const typed = MAIN.replace(
      '--- @include',
      '--- @type Run, Reply from ./run.ts\n--- @type Group from @a/b\n--- @include',
    )
    const { whole, types } = read({ ...files, main: typed })
    expect(types).toEqual([
      { names: ['Run', 'Reply'], from: expect.stringMatching(/^\/.*\/run\.ts$/) },
      { names: ['Group'], from: '@a/b' },
    ])
    const [{ from }] = types
    const script = {
      name: 'a',
      summary: [],
      keys: [],
      args: [],
      lua: whole,
      types: [...types, { names: ['At'], from }],
    }
    expect(typedModule([script, script], dirname(dirname(from)), {})).toMatch(
      /^\/\/.*\nimport type \{ Group \} from '@a\/b'\nimport \{ withIncludes \} .*\nimport \{ luaScript \} .*\nimport type \{ At, Reply, Run \} from '\.\/[\w-]+\/run\.ts'\n/,
    )
  })

  it.each([
    ['#!lua flags=fast', (text) => text.replace('allow-oom', 'fast'), /:1: expected one of/],
    ['no header', () => '#!lua\nreturn 1\n', /expected a comment at the top/],
    ['a number', (text) => text.replace('ARGV  first', 'ARGV[1]  first'), /expected names, .*ARGV\[1\] {2}first/],
    ['one blank', (text) => text.replace('second   the', 'second the'), /expected names, .*ARGV {2}second the other/],
    ['no blank between names', (text) => text.replace('counter, total', 'counter,total'), /KEYS {2}counter,total/],
    ['a blank at the end of names', (text) => text.replace('ARGV  first', 'ARGV  first '), /ARGV {2}first $/],
    [
      'another number of named arguments',
      (text) => text.replace('ARGV[3...]', 'ARGV[2...]'),
      /further arguments begin with ARGV\[2\]; expected ARGV\[3\]/,
    ],
    ['an unknown include', (text) => text.replace('@include twice', '@include thrice'), /there is no include thrice/],
  ])('is refused with %s', (_, change, message) => {
    expect(() => read({ ...files, main: change(MAIN) })).toThrow(message)
  })

  it('is refused with a global name that Redis does not define, and if it is not Lua', () => {
    expect(() => expectKnownNames('main', '#!lua\nlocal a = 1\nreturn b')).toThrow(
      'line 3 of the whole script uses an unknown name: b',
    )
    expect(() => expectKnownNames('main', '#!lua\nlocal = 1')).toThrow(/^main: .*npm run lua -- show main/)
  })
})

it('a script’s text is a template without escapes of its own', () => {
  const lua = ["return '\\n' .. '`' .. '$", "{x}'"].join('')
  const script = {
    name: 'a-b',
    summary: ['Does.'],
    keys: ['one'],
    args: [],
    kind: 'reads',
    types: [],
    lua,
  }
  const [, written] = /lua: (`[\s\S]*`),\n/.exec(typedModule([script], '/', {}))
  expect(new Function(`return ${written}`)()).toBe(lua)
})

it('the repository’s Lua files and their module are as npm run lua writes them', () => {
  const { expected, scripts } = expectedFiles()
  expect(scripts.length).toBeGreaterThan(10)
  for (const [path, text] of expected) expect(readFileSync(path, 'utf8')).toBe(text)
})
