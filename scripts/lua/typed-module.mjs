// Writes the TypeScript module that holds every script, with the types of its keys, arguments and reply.
import { relative } from 'node:path'

const camel = (name) => name.replaceAll(/-(\w)/g, (_, letter) => letter.toUpperCase())
const union = (names) => (names.length === 0 ? 'never' : names.map((name) => `'${name}'`).join(' | '))
const list = (names) => `[${names.map((name) => `'${name}'`).join(', ')}]`
const literal = (lua) => `\`${lua.replaceAll('\\', '\\\\').replaceAll('`', '\\`').replaceAll('${', '\\${')}\``

/** Returns the lines of a comment, which break where the script's header does. */
const wrapped = (summary) => summary.map((line) => ` * ${line}`).join('\n')

/** Returns the imports of the module, as Biome sorts them: packages first. */
function importsOf(scripts, folder) {
  const names = new Map()
  for (const { names: found, from } of scripts.flatMap(({ types }) => types)) {
    const path = relative(folder, from)
    const source = !from.startsWith('/') ? from : path.startsWith('.') ? path : `./${path}`
    names.set(source, new Set([...(names.get(source) ?? []), ...found]))
  }
  const lines = [...names].map(([source, found]) => [
    source,
    `import type { ${[...found].toSorted().join(', ')} } from '${source}'\n`,
  ])
  lines.push(['../scripts/includes.ts', "import { withIncludes } from '../scripts/includes.ts'\n"])
  lines.push(['../scripts/script.ts', "import { luaScript } from '../scripts/script.ts'\n"])
  const rank = ([source]) => `${source.startsWith('.') ? 1 : 0} ${source}`
  return lines
    .toSorted((one, other) => (rank(one) < rank(other) ? -1 : 1))
    .map(([, line]) => line)
    .join('')
}

/**
 * @param {readonly import('./lua-file.mjs').LuaScript[]} scripts
 * @param {string} folder the module's
 * @param {import('../../packages/bullmq/src/scripts/includes.ts').Includes} includes
 */
export function typedModule(scripts, folder, includes) {
  const shared = Object.entries(includes).map(([name, lua]) => `'${name}': ${literal(lua)},\n`)
  const entries = scripts.map(
    ({ name, summary, keys, args, reply, lua }) => `/**
${wrapped(summary)}
 */
export const ${camel(name)}Script = luaScript<${union(keys)}, ${union(args)}, ${reply ?? 'void'}>({
  name: '${name}',
  keys: ${list(keys)},
  args: ${list(args)},
  includes: INCLUDES,
  lua: ${literal(lua)},
})
`,
  )
  return `// Every Lua script, with its types. Written by npm run lua from the .lua files; not edited by hand.
${importsOf(scripts, folder)}
const INCLUDES = {
${shared.join('')}} as const

/** Returns an include with those that it asks for. */
export const luaInclude = (name: keyof typeof INCLUDES): string => withIncludes(INCLUDES[name], INCLUDES)

${entries.join('\n')}`
}
