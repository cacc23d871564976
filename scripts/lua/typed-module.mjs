// Writes the TypeScript module that holds every script, with the types of its keys, arguments and reply.

const camel = (name) => name.replaceAll(/-(\w)/g, (_, letter) => letter.toUpperCase())
const union = (names) => (names.length === 0 ? 'never' : names.map((name) => `'${name}'`).join(' | '))
const list = (names) => `[${names.map((name) => `'${name}'`).join(', ')}]`
const literal = (lua) => `\`${lua.replaceAll('\\', '\\\\').replaceAll('`', '\\`').replaceAll('${', '\\${')}\``

/** Returns the lines of a comment, which break where the script's header does. */
const wrapped = (summary) => summary.map((line) => ` * ${line}`).join('\n')

/** @param {readonly import('./lua-file.mjs').LuaScript[]} scripts */
export function typedModule(scripts) {
  const entries = scripts.map(
    ({ name, summary, keys, args, reply, whole }) => `/**
${wrapped(summary)}
 */
export const ${camel(name)}Script = luaScript<${union(keys)}, ${union(args)}, ${reply ?? 'void'}>({
  name: '${name}',
  keys: ${list(keys)},
  args: ${list(args)},
  lua: ${literal(whole)},
})
`,
  )
  return `// Every Lua script as Redis runs it, with its types. Written by npm run lua from the .lua files; not edited by hand.
import type { GroupPhase, GroupResult } from '@bullpen/contract'
import type { OutboxSpanReply } from '../outbox/outbox-span.ts'
import type { RunReply } from '../runs/run-change.ts'
import { luaScript } from '../scripts/script.ts'

${entries.join('\n')}`
}
