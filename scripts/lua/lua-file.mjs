// Reads one Lua script: its header, its names and its includes.
//
// A script's header is the comment at its top. It says what the script does, then names each key and argument, then the reply:
//
//   KEYS[1]  lease    the leader's lease
//   ARGV[1]  holder   who asks for it
//   ARGV...           further arguments
//
//   Returns `[fencing: number, leftMs: number]`: …
//
// The code below it reads each of them into a local variable of the same name. A line `--- @include time` is replaced by that include
// (packages/bullmq/src/scripts/includes.ts), which is a header and functions. A line `--- @type Run, Reply from ./run.ts` says where types
// of the reply are from.
import { globSync, readFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { withIncludes } from '../../packages/bullmq/src/scripts/includes.ts'
import { UserError } from '../system/user-error.mjs'

const INCLUDE = /^ *--- @include (\S+)$/gm
const TYPE = /^--- @type (.+) from (\S+)$/gm
const HEADER = /^(?:--(?: .*)?\n)+/
const FLAGS = { '#!lua': 'adds', '#!lua flags=allow-oom': 'frees', '#!lua flags=no-writes': 'reads' }

/**
 * @typedef {object} LuaScript
 * @property {string} name its file's name
 * @property {'adds' | 'frees' | 'reads'} kind what Redis is told of the script (store/script.ts)
 * @property {readonly string[]} summary the lines of the first paragraph of the header
 * @property {readonly string[]} keys
 * @property {readonly string[]} args
 * @property {boolean} takesMore whether further arguments follow the named ones
 * @property {string | undefined} reply a TypeScript type
 * @property {readonly { names: readonly string[], from: string }[]} types the types in the reply, and the module or file of each
 * @property {string} lua its text, without comments
 * @property {string} whole the text that Redis runs, with its includes
 */

/** Returns the includes of a folder and of those in it, by the names of their files. */
export function readIncludes(folder) {
  const paths = new Map()
  for (const file of globSync('**/*.lua', { cwd: folder }).toSorted()) {
    const [name, path] = [basename(file, '.lua'), join(folder, file)]
    if (paths.has(name)) throw new UserError(`${path}: ${paths.get(name)} has the same name`)
    paths.set(name, path)
  }
  const names = [...paths.keys()].toSorted()
  const texts = names.map((name) => {
    const path = paths.get(name)
    const text = readFileSync(path, 'utf8')
    headerOf(path, text)
    return [name, ownLua(path, text, names)]
  })
  return Object.fromEntries(texts)
}

/**
 * @param {string} path
 * @param {import('../../packages/bullmq/src/scripts/includes.ts').Includes} includes
 * @returns {LuaScript}
 */
export function readLua(path, includes) {
  const text = readFileSync(path, 'utf8')
  const [first, ...rest] = text.split('\n')
  const kind = FLAGS[first]
  if (kind === undefined) throw new UserError(`${path}:1: expected one of ${Object.keys(FLAGS).join(', ')}`)
  const body = rest.join('\n')
  const header = headerOf(path, body)
  const [summary = ''] = header.split(/\n\s*\n/)
  const [keys, args] = [namesIn(path, header, 'KEYS'), namesIn(path, header, 'ARGV')]
  expectLocals(path, body, 'KEYS', keys)
  expectLocals(path, body, 'ARGV', args)
  const lua = `${first}\n${ownLua(path, body, Object.keys(includes))}`
  return {
    name: /** @type {string} */ (
      path
        .split('/')
        .at(-1)
        ?.replace(/\.lua$/, '')
    ),
    kind,
    summary: summary.trim().split('\n'),
    keys,
    args,
    takesMore: /^\s*ARGV\.\.\. /m.test(header),
    reply: /Returns `([^`]+)`/.exec(header)?.[1]?.replaceAll(/\s*\n\s*/g, ' '),
    types: [...body.matchAll(TYPE)].map(([, names, from]) => ({
      names: names.split(', '),
      from: from.startsWith('.') ? resolve(dirname(path), from) : from,
    })),
    lua,
    whole: withIncludes(lua, includes),
  }
}

function headerOf(path, text) {
  const [header] = HEADER.exec(text) ?? []
  if (header === undefined) throw new UserError(`${path}: expected a comment at the top that says what the file does`)
  return header.replaceAll(/^-- ?/gm, '')
}

/** Returns the names of the keys or arguments in the header, which are numbered without a gap. */
function namesIn(path, header, table) {
  const found = [...header.matchAll(new RegExp(`^\\s*${table}\\[(\\d+)\\]\\s+(\\w+)`, 'gm'))]
  for (const [i, [, number, name]] of found.entries())
    if (Number(number) !== i + 1)
      throw new UserError(`${path}: ${name} is ${table}[${number}]; expected ${table}[${i + 1}]`)
  return found.map(([, , name]) => name)
}

/** The code must read each key and argument under the name that the header gives it. */
function expectLocals(path, text, table, names) {
  const declared = [
    ...text.matchAll(new RegExp(`^local ([\\w, ]+) = (${table}\\[\\d+\\](?:, ${table}\\[\\d+\\])*)$`, 'gm')),
  ]
  const found = new Map(
    declared.flatMap(([, locals, values]) => {
      const numbers = values.matchAll(/\[(\d+)\]/g)
      return locals.split(', ').map((local) => [Number(numbers.next().value?.[1]), local])
    }),
  )
  for (const [i, name] of names.entries())
    if (found.get(i + 1) !== name)
      throw new UserError(`${path}: the header calls ${table}[${i + 1}] ${name}; the code calls it ${found.get(i + 1)}`)
  if (found.size !== names.length) throw new UserError(`${path}: the header does not name all of ${table}`)
}

/** Returns the code, and the lines that ask for includes. Other comments are for readers of the file; Redis would keep them in memory. */
function ownLua(path, text, names) {
  for (const [, name] of text.matchAll(INCLUDE))
    if (!names.includes(name)) throw new UserError(`${path}: there is no include ${name}`)
  return text
    .replaceAll(/^ *--(?!- @include ).*\n/gm, '')
    .replaceAll(/\n{2,}/g, '\n')
    .trimStart()
}
