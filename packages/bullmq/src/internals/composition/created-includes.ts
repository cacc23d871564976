// The includes whose functions the changed texts of BullMQ's scripts call. Few tasks need them, and Redis would create them again in every
// run of a script, so a script creates the functions of an include when it first needs one of them.
import { luaInclude } from '../../store/scripts.ts'

/** By the name of an include (../../store/lua/includes), the functions that the texts call. */
const FUNCTIONS = { lanes: ['enter_lane'] } as const
const NAMES = Object.keys(FUNCTIONS) as (keyof typeof FUNCTIONS)[]

/**
 * Returns Lua that defines the function `include(name)`, which returns the functions of an include, for these lines of a script, which call
 * it as `include('lanes')`. The Lua needs the local variable `base`.
 */
export function createdIncludes(lines: string): string {
  const used = NAMES.filter((name) => lines.includes(`include('${name}')`))
  if (used.length === 0) return ''
  const created = used.map(
    (name) => `if name == '${name}' then
${luaInclude(name)}
      included[name] = { ${FUNCTIONS[name].map((each) => `${each} = ${each}`).join(', ')} }
    end`,
  )
  return `
local included
local function include(name)
  included = included or {}
  if not included[name] then
    ${created.join('\n    ')}
  end
  return included[name]
end`
}
