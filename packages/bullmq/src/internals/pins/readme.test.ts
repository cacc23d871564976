// The page that lists what Bullpen relies on in BullMQ names files and tests that exist.
import { existsSync, globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'

const internals = join(import.meta.dirname, '..')
const repository = join(internals, '../../../..')

const text = readFileSync(join(internals, 'README.md'), 'utf8').replaceAll(/\n +/g, ' ')

/** The tests of a paragraph, and the entries that follow it. */
function sections() {
  const found: { readonly test: string; readonly entries: string[] }[] = []
  for (const line of text.split('\n')) {
    const test = /^`([^`]+\.test\.ts)`/.exec(line)?.[1]
    if (test !== undefined) found.push({ test, entries: [] })
    else if (line.startsWith('- ')) found.at(-1)?.entries.push(line)
  }
  return found
}

const pathOf = (file: string): string => join(file.startsWith('packages/') ? repository : internals, file)
const entries = sections().flatMap(({ test, entries: all }) => all.map((entry) => ({ test, entry })))
/** An entry names its pins. If they are in other files than that of its paragraph, it names these in parentheses. */
const PINS = /\bPins?(?: \(([^)]+)\))?: (.*)$/
const pinsIn = (entry: string): string[] =>
  [...(PINS.exec(entry)?.[2] ?? '').matchAll(/"([^"]+)"/g)].map(([, title]) => title ?? '')
const filesOf = (test: string, entry: string): string[] => {
  const others = [...(PINS.exec(entry)?.[1] ?? '').matchAll(/`([^`]+)`/g)].map(([, file]) => file ?? '')
  return others.length > 0 ? others : [test]
}

describe('the list of reliances', () => {
  it.each(entries)('$test: $entry', ({ test, entry }) => {
    const sources = filesOf(test, entry).map((file) => readFileSync(pathOf(file), 'utf8'))
    const source = sources.join('\n').replaceAll("\\'", "'")
    expect(pinsIn(entry).length).toBeGreaterThan(0)
    expect(pinsIn(entry).filter((title) => !source.includes(title))).toEqual([])
  })

  it('names only files that exist', () => {
    const files = [...text.matchAll(/`([\w./-]+(?:\.ts|\/))`/g)].map(([, file]) => file ?? '')
    expect(files.length).toBeGreaterThan(20)
    expect([...new Set(files)].filter((file) => !existsSync(pathOf(file)))).toEqual([])
  })

  it('names every module of the folder', () => {
    const modules = globSync('**/*.ts', { cwd: internals }).filter((file) => !/\.(test|fixture)\.ts$/.test(file))
    expect(modules.length).toBeGreaterThan(15)
    expect(modules.filter((file) => !text.includes(`\`${file}\``))).toEqual([])
  })

  it('names every pin', () => {
    const named = new Set(entries.flatMap(({ entry }) => pinsIn(entry)))
    const pins = ['backend', 'data', 'scripts', 'worker'].flatMap((name) => {
      const source = readFileSync(join(import.meta.dirname, `${name}.test.ts`), 'utf8')
      return [...source.matchAll(/\bit(?:\.each\([^\n]*?\))?\(\s*(["'])(.+?)(?<!\\)\1,/g)].map(
        ([, , title]) => title ?? '',
      )
    })
    expect(pins.length).toBeGreaterThan(40)
    expect(pins.filter((title) => !named.has(title.replaceAll("\\'", "'")))).toEqual([])
  })
})
