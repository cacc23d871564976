// All Lua scripts: those of the .lua files, and those of BullMQ that run with a first line of ours.
import { FLAGGED } from '../store/bullmq-scripts.ts'
import * as luaFiles from '../store/scripts.ts'

interface Declared {
  readonly name: string
  readonly lua: string
}

/** Bullpen's own scripts. */
export const ownScripts: readonly Declared[] = Object.values<unknown>(luaFiles).filter(isScript)

/** The text of each script by its name. */
export const scripts: ReadonlyMap<string, string> = new Map(
  [...ownScripts, ...FLAGGED.values()].map(({ name, lua }) => [name, lua]),
)

function isScript(value: unknown): value is Declared {
  return typeof value === 'object' && value !== null && 'lua' in value && 'name' in value && 'numberOfKeys' in value
}
