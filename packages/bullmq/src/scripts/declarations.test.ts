// Every script declares itself to Redis: with `#!lua`, so that a cluster refuses a second hash slot, and with the flags of its kind.
import { globSync } from 'node:fs'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { COMPOSED } from '../internals/composition/composed-scripts.ts'

interface Declared {
  readonly name: string
  readonly lua: string
}

/** Bullpen's own scripts, which are the exports of the files in this directory that have a text. */
const own = await Promise.all(
  globSync('*/**/*.ts', { cwd: import.meta.dirname, exclude: (path) => /\.(test|fixture)\.ts$/.test(path) }).map(
    async (path): Promise<Declared[]> => {
      const module = (await import(join(import.meta.dirname, path))) as Readonly<Record<string, unknown>>
      return Object.values(module).filter(isScript)
    },
  ),
)

const scripts = new Map([...own.flat(), ...COMPOSED.values()].map(({ name, lua }) => [name, lua]))

function isScript(value: unknown): value is Declared {
  return typeof value === 'object' && value !== null && 'lua' in value && 'name' in value && 'numberOfKeys' in value
}

function namesWith(firstLine: string): string[] {
  return [...scripts].flatMap(([name, lua]) => (lua.split('\n')[0] === firstLine ? [name.replace('bullpen:', '')] : []))
}

it('every script, also each composed one, begins with #!lua', () => {
  expect(own.flat().length).toBeGreaterThan(20)
  expect([...scripts].filter(([, lua]) => !lua.startsWith('#!lua')).map(([name]) => name)).toEqual([])
})

it('only a script that adds something new is refused by a full Redis', () => {
  expect(namesWith('#!lua').toSorted()).toEqual([
    ...['addDelayedJob', 'addJobScheduler', 'addLog', 'addParentJob', 'addPrioritizedJob', 'addStandardJob'],
    'claim-namespace',
  ])
})

it('a script that only reads says so, and every other one runs in a full Redis', () => {
  const others = [...namesWith('#!lua'), ...namesWith('#!lua flags=allow-oom'), ...namesWith('#!lua flags=no-writes')]
  expect(others).toHaveLength(scripts.size)
  expect(namesWith('#!lua flags=no-writes').length).toBeGreaterThan(0)
})
