// All Lua scripts: those of the .lua files, those in this directory, and those that are composed from BullMQ's.
import { globSync } from 'node:fs'
import { join } from 'node:path'
import { COMPOSED } from '../internals/composition/composed-scripts.ts'
import * as luaFiles from '../store/scripts.ts'

interface Declared {
  readonly name: string
  readonly lua: string
}

/** Bullpen's own scripts: the .lua files, and the exports of the files in this directory that have a text. */
export const ownScripts: readonly Declared[] = (
  await Promise.all(
    globSync('*/**/*.ts', { cwd: import.meta.dirname, exclude: (path) => /\.(test|fixture)\.ts$/.test(path) }).map(
      async (path) => {
        const module = (await import(join(import.meta.dirname, path))) as Readonly<Record<string, unknown>>
        return Object.values(module).filter(isScript)
      },
    ),
  )
)
  .flat()
  .concat(Object.values<unknown>(luaFiles).filter(isScript))

/** The text of each script by its name. */
export const scripts: ReadonlyMap<string, string> = new Map(
  [...ownScripts, ...COMPOSED.values()].map(({ name, lua }) => [name, lua]),
)

function isScript(value: unknown): value is Declared {
  return typeof value === 'object' && value !== null && 'lua' in value && 'name' in value && 'numberOfKeys' in value
}
